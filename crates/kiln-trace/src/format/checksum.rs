//! CRC-32 (IEEE 802.3), which finds every change of up to 32 neighbouring bits.

/// The checksum of the pieces, as if they were one.
pub(crate) fn checksum(pieces: &[&[u8]]) -> u32 {
    let mut crc = u32::MAX;
    for piece in pieces {
        for byte in *piece {
            let index = (crc ^ u32::from(*byte)) & 0xff;
            crc = (crc >> 8) ^ TABLE[index as usize];
        }
    }
    !crc
}

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut value = at as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ 0xedb8_8320 } else { value >> 1 };
            bit += 1;
        }
        table[at] = value;
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_standard_comes_out() {
        assert_eq!(checksum(&[b"123456789"]), 0xcbf4_3926);
        assert_eq!(checksum(&[b"1234", b"", b"56789"]), 0xcbf4_3926);
        assert_eq!(checksum(&[]), 0);
    }
}
