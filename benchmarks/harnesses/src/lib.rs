//! Eight small functions, each of which is measured with five sizes of its input.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher};

pub const SIZES: [usize; 5] = [10, 20, 50, 100, 200];

/// Return numbers in no order, the same ones each time.
pub fn numbers(size: usize) -> Vec<u64> {
    (1..=size as u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).collect()
}

/// Return these numbers as words of a text.
pub fn text(size: usize) -> String {
    numbers(size).iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

#[inline(never)]
pub fn sum(values: &[u64]) -> u64 {
    values.iter().fold(0, |sum, value| std::hint::black_box(sum ^ value))
}

#[inline(never)]
pub fn sort(values: &[u64]) -> Vec<u64> {
    let mut sorted = values.to_vec();
    sorted.sort();
    sorted
}

#[inline(never)]
pub fn insertion(values: &[u64]) -> Vec<u64> {
    let mut sorted: Vec<u64> = Vec::new();
    for value in values {
        let place = sorted.iter().position(|other| other > value).unwrap_or(sorted.len());
        sorted.insert(place, *value);
    }
    sorted
}

#[inline(never)]
pub fn tree(values: &[u64]) -> usize {
    values.iter().map(|value| (*value, 1)).collect::<BTreeMap<_, _>>().len()
}

#[inline(never)]
pub fn table(values: &[u64]) -> usize {
    let mut found: HashMap<u64, u64, BuildHasherDefault<DefaultHasher>> = HashMap::default();
    for value in values {
        *found.entry(value % 16).or_default() += 1;
    }
    found.len()
}

#[inline(never)]
pub fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[inline(never)]
pub fn parse(text: &str) -> u64 {
    text.split(' ').map(|word| word.parse::<u64>().unwrap()).sum()
}

#[inline(never)]
pub fn join(text: &str) -> String {
    text.split(' ').rev().collect::<Vec<_>>().join("-")
}
