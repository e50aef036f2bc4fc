//! Seeded random streams with names.
//!
//! Our own sixteen lines rather than a crate: a stream must give the same numbers under a recorded scenario for ever,
//! which no crate promises across its major versions.

use super::Share;

/// SplitMix64.
///
/// * Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014; timing rule 12.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The stream called `name` under `seed`. Adding a stream leaves all others as they were.
    pub fn named(seed: u64, name: &str) -> Self {
        // FNV-1a over the name, so that the stream depends on nothing but the name and the seed.
        let hash =
            name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        let mut rng = Self(seed ^ hash);
        Self(rng.next_u64())
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// True with probability `share`, to 10⁻¹² exactly.
    pub fn chance(&mut self, share: Share) -> bool {
        let drawn = (u128::from(self.next_u64()) * u128::from(Share::UNIT)) >> 64;
        drawn < u128::from(share.parts())
    }

    /// Uniform in [0, 1), 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published first outputs for seed 1234567.
    #[test]
    fn splitmix64_gives_its_published_numbers() {
        let mut rng = Rng::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317_u64,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expected.map(|_| rng.next_u64()), expected);
    }

    #[test]
    fn certain_and_impossible_chances_are_exact() {
        let mut rng = Rng::new(1);
        assert!((0..1_000).all(|_| rng.chance(Share::from_percent(100))));
        assert!((0..1_000).all(|_| !rng.chance(Share::ZERO)));
    }

    #[test]
    fn streams_of_other_names_differ() {
        let first = |seed, name| Rng::named(seed, name).next_u64();
        assert_eq!(first(1, "link/a-b"), first(1, "link/a-b"));
        assert_ne!(first(1, "link/a-b"), first(1, "link/b-a"));
        assert_ne!(first(1, "link/a-b"), first(2, "link/a-b"));
    }
}
