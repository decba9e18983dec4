// Algorithms of known growth with Rust's own collections: ./programs NAME SIZE
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

fn numbers(n: usize) -> Vec<u32> {
    let mut state = 1u32;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(1103515245).wrapping_add(12345);
            state >> 8
        })
        .collect()
}

fn sort_unstable(n: usize) -> usize {
    let mut found = numbers(n);
    found.sort_unstable();
    found[n / 2] as usize
}

fn sort_sorted(n: usize) -> usize {
    let mut found: Vec<usize> = (0..n).collect();
    found.sort();
    found[n / 2]
}

fn hash_map(n: usize) -> usize {
    let found: HashMap<usize, usize> = (0..n).map(|i| (i, i)).collect();
    (0..n).filter_map(|i| found.get(&(2 * i))).count()
}

fn btree_map(n: usize) -> usize {
    let found: BTreeMap<u32, usize> = numbers(n).into_iter().zip(0..).collect();
    numbers(n).iter().filter_map(|key| found.get(key)).sum()
}

fn push_str(n: usize) -> usize {
    let mut text = String::new();
    for _ in 0..n {
        text.push_str("word ");
    }
    text.len()
}

fn concatenated(n: usize) -> usize {
    let mut text = String::new();
    for _ in 0..n {
        text = format!("{text}a longer word ");
    }
    text.len()
}

fn remove_first(n: usize) -> usize {
    let mut found: Vec<u64> = (0..n as u64).collect();
    let mut sum = 0;
    while !found.is_empty() {
        sum += found.remove(0) as usize;
    }
    sum
}

fn pop_front(n: usize) -> usize {
    let mut found: VecDeque<usize> = (0..n).collect();
    let mut sum = 0;
    while let Some(next) = found.pop_front() {
        sum += next;
    }
    sum
}

fn duplicates_by_contains(n: usize) -> usize {
    let mut seen: Vec<usize> = Vec::new();
    for i in 0..n {
        if !seen.contains(&(i * 7)) {
            seen.push(i * 7);
        }
    }
    seen.len()
}

fn duplicates_by_set(n: usize) -> usize {
    (0..n).map(|i| i * 7).collect::<HashSet<_>>().len()
}

fn matrix_product(n: usize) -> usize {
    let a: Vec<Vec<u64>> = (0..n).map(|i| (0..n).map(|j| (i * j) as u64).collect()).collect();
    let mut sum = 0u64;
    for i in 0..n {
        for j in 0..n {
            for k in 0..n {
                sum = sum.wrapping_add(a[i][k] * a[k][j]);
            }
        }
    }
    sum as usize
}

#[inline(never)]
fn fibonacci(n: usize) -> usize {
    if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let run = match words[1].as_str() {
        "sort_unstable" => sort_unstable,
        "sort_sorted" => sort_sorted,
        "hash_map" => hash_map,
        "btree_map" => btree_map,
        "push_str" => push_str,
        "concatenated" => concatenated,
        "remove_first" => remove_first,
        "pop_front" => pop_front,
        "duplicates_by_contains" => duplicates_by_contains,
        "duplicates_by_set" => duplicates_by_set,
        "matrix_product" => matrix_product,
        "fibonacci" => fibonacci,
        other => panic!("no program {other}"),
    };
    println!("{}", run(words[2].parse().unwrap()));
}
