//! Lists that are short as a rule, and need no allocation then.

use std::slice;

/// One or more.
#[derive(Clone, Debug)]
pub(crate) enum Few<T> {
    One(T),
    More(Vec<T>),
}

impl<T> Few<T> {
    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Self::One(one) => slice::from_ref(one),
            Self::More(more) => more,
        }
    }

    /// These, and others behind them.
    pub(crate) fn and(self, others: Self) -> Self {
        let mut all: Vec<T> = self.into_vec();
        all.extend(others.into_vec());
        Self::More(all)
    }

    fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one],
            Self::More(more) => more,
        }
    }
}

/// Up to two.
#[derive(Clone, Debug)]
pub(crate) struct UpToTwo<T> {
    first: Option<T>,
    second: Option<T>,
}

impl<T> Default for UpToTwo<T> {
    fn default() -> Self {
        Self { first: None, second: None }
    }
}

impl<T> UpToTwo<T> {
    /// Puts one behind those that are there. False if there are two.
    #[must_use]
    pub(crate) fn push(&mut self, item: T) -> bool {
        let place = if self.first.is_none() { &mut self.first } else { &mut self.second };
        if place.is_some() {
            return false;
        }
        *place = Some(item);
        true
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.second)
    }

    /// The first and the second.
    pub(crate) fn both(&self) -> (Option<&T>, Option<&T>) {
        (self.first.as_ref(), self.second.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::{Few, UpToTwo};

    #[test]
    fn what_is_put_in_comes_out_in_its_order() {
        let few = Few::One(1).and(Few::One(2)).and(Few::More(vec![3, 4]));
        assert_eq!((few.as_slice(), Few::One(5).as_slice()), (&[1, 2, 3, 4][..], &[5][..]));
        let mut two = UpToTwo::default();
        assert!(two.push('a') && two.push('b') && !two.push('c'));
        assert_eq!(two.iter().collect::<String>(), "ab");
        assert_eq!(two.both(), (Some(&'a'), Some(&'b')));
    }
}
