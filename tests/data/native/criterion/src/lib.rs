//! What is measured.

use std::collections::BTreeMap;

/// Without `inline(never)` there may be no function to name.
#[inline(never)]
pub fn count(text: &str) -> usize {
    let mut words = BTreeMap::new();
    for word in text.split(' ') {
        *words.entry(word).or_insert(0) += 1;
    }
    words.len()
}
