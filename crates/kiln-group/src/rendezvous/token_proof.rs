//! Proofs that a side knows the token of the job, without sending it.
//!
//! Each side sends a random number and gets back a keyed hash of it, of the role of the sender and of what it claims. A proof is of use for one
//! connection only, and a rank cannot answer with the proof of the store.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::SystemTime;

use super::message::Proof;

/// The key that the token of a job gives.
#[derive(Clone)]
pub(super) struct TokenKey([u8; 32]);

impl TokenKey {
    pub(super) fn new(token: &str) -> Self {
        Self(blake3::derive_key("kiln 2026-11-17 rendezvous token", token.as_bytes()))
    }

    /// What the store answers to the number of a rank.
    pub(super) fn store_proof(&self, nonce: &Proof) -> Proof {
        self.proof("store", nonce, &[])
    }

    /// What a rank answers to the number of the store.
    pub(super) fn rank_proof(&self, nonce: &Proof, rank: u32, size: u32) -> Proof {
        self.proof("rank", nonce, &[rank, size])
    }

    /// Compares in a time that says nothing about where the two differ.
    pub(super) fn same(left: &Proof, right: &Proof) -> bool {
        blake3::Hash::from(*left) == blake3::Hash::from(*right)
    }

    fn proof(&self, role: &str, nonce: &Proof, claims: &[u32]) -> Proof {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(role.as_bytes()).update(nonce);
        for claim in claims {
            hasher.update(&claim.to_le_bytes());
        }
        *hasher.finalize().as_bytes()
    }
}

/// A number that another connection does not have and that cannot be guessed: the keys of the standard library's hash maps are random.
pub(super) fn random_nonce() -> Proof {
    let mut hasher = blake3::Hasher::new();
    for part in 0..4_u32 {
        hasher.update(&RandomState::new().hash_one((part, SystemTime::now())).to_le_bytes());
    }
    hasher.update(&std::process::id().to_le_bytes());
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_token_one_number_one_role_and_one_rank() {
        let (key, other) = (TokenKey::new("secret"), TokenKey::new("Secret"));
        let (one, two) = (random_nonce(), random_nonce());
        assert_ne!(one, two);
        let proof = key.rank_proof(&one, 1, 2);
        assert!(TokenKey::same(&proof, &key.rank_proof(&one, 1, 2)));
        for different in [
            other.rank_proof(&one, 1, 2),
            key.rank_proof(&two, 1, 2),
            key.rank_proof(&one, 0, 2),
            key.rank_proof(&one, 1, 3),
            key.store_proof(&one),
        ] {
            assert!(!TokenKey::same(&proof, &different));
        }
    }
}
