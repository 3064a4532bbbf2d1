//! What the crate's arithmetic computes for extreme and random numbers. Unit tests named
//! `vectors_*` print it; `loom-tests/axioms` compares it with the formulas that it has proved.

/// Extreme numbers, and as many random ones of all lengths.
pub(crate) fn numbers(seed: u64, random: usize) -> Vec<u64> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut numbers =
        vec![0, 1, 2, 3, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX];
    numbers.extend((0..random).map(|_| rng.u64(..) >> rng.u32(..64)));
    numbers
}

/// Prints what a function computes of its arguments.
pub(crate) fn show(function: &str, arguments: &[u64], results: &[u64]) {
    let words = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    println!("vector {function} {} = {}", words(arguments), words(results));
}
