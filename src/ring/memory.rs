//! Octets in memory that is shared as words.

use super::primitive::{AtomicU64, Ordering};

const WORD: usize = size_of::<u64>();

/// Copies octets out of shared memory, from `offset` on.
///
/// What the other side writes meanwhile may or may not be in it; no octet is made up.
///
/// * Panics: if the range leaves the memory; the caller has checked it.
/// * Cost: a load per eight octets.
pub fn copy_out(memory: &[AtomicU64], offset: usize, into: &mut [u8]) {
    let (mut at, mut rest) = (offset, into);
    while !rest.is_empty() {
        let within = at % WORD;
        let count = (WORD - within).min(rest.len());
        // Relaxed: payload is ordered by the index or the message that speaks of it.
        let octets = memory[at / WORD].load(Ordering::Relaxed).to_ne_bytes();
        let (head, tail) = rest.split_at_mut(count);
        head.copy_from_slice(&octets[within..within + count]);
        (at, rest) = (at + count, tail);
    }
}

/// Copies octets into shared memory, from `offset` on.
///
/// Octets beside the range keep what they hold, even if the other side writes to them in the same moment.
///
/// * Panics: as of [`copy_out`].
/// * Cost: a store per eight octets, two read-modify-writes for a part of a word at either end.
pub fn copy_in(memory: &[AtomicU64], offset: usize, from: &[u8]) {
    let (mut at, mut rest) = (offset, from);
    while !rest.is_empty() {
        let within = at % WORD;
        let count = (WORD - within).min(rest.len());
        let (head, tail) = rest.split_at(count);
        let word = &memory[at / WORD];
        let (mut octets, mut mask) = ([0; WORD], [0xff; WORD]);
        octets[within..within + count].copy_from_slice(head);
        let octets_word = u64::from_ne_bytes(octets);
        // Relaxed, as in `copy_out`.
        if count == WORD {
            word.store(octets_word, Ordering::Relaxed);
        } else {
            mask[within..within + count].fill(0);
            // In two steps, neither of which touches the neighbours: a word that is taken by two writers is nobody's to store.
            word.fetch_and(u64::from_ne_bytes(mask), Ordering::Relaxed);
            word.fetch_or(octets_word, Ordering::Relaxed);
        }
        (at, rest) = (at + count, tail);
    }
}

#[cfg(all(test, not(rocemu_loom)))]
mod tests {
    use super::*;

    #[test]
    fn octets_go_in_and_come_out_at_any_offset_and_leave_their_neighbours_alone() {
        for offset in 0..16 {
            for length in 0..24 {
                let memory: Vec<_> = (0..5).map(|_| AtomicU64::new(u64::MAX)).collect();
                let octets: Vec<u8> = (1..=length).collect();
                copy_in(&memory, offset, &octets);
                let mut all = [0; 40];
                copy_out(&memory, 0, &mut all);
                let mut expected = [0xff; 40];
                expected[offset..offset + octets.len()].copy_from_slice(&octets);
                assert_eq!(all, expected, "{length} octets at {offset}");
                let mut back = vec![0; octets.len()];
                copy_out(&memory, offset, &mut back);
                assert_eq!(back, octets);
            }
        }
    }
}
