//! Programs in Rust: `programs NAME SIZE [PASSES]` prints the least CPU seconds of its passes, as harness.h does.
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hint::black_box;

#[repr(C)]
struct Timespec(i64, i64);
extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

fn cpu_seconds() -> f64 {
    let mut now = Timespec(0, 0);
    unsafe { clock_gettime(3, &mut now) }; // CLOCK_THREAD_CPUTIME_ID
    now.0 as f64 + now.1 as f64 / 1e9
}

struct Input {
    size: usize,
    numbers: Vec<u32>,
    text: String,
}

impl Input {
    fn new(size: usize) -> Input {
        let mut seed = 12345u32;
        let mut any = || {
            seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
            seed >> 8
        };
        let numbers = (0..size).map(|_| any()).collect();
        let text = (0..size).map(|_| format!("{{\"w{}\": [{}, {}.5]}},\n", any() % 700, any(), any() % 1000)).collect();
        Input { size, numbers, text }
    }
}

fn sort(input: &Input) -> u64 {
    let mut copy = input.numbers.clone();
    copy.sort();
    copy[input.size / 2].into()
}
fn sort_unstable(input: &Input) -> u64 {
    let mut copy = input.numbers.clone();
    copy.sort_unstable();
    copy[input.size / 2].into()
}
fn sort_keys(input: &Input) -> u64 {
    let mut lines: Vec<&str> = input.text.lines().collect();
    lines.sort_by_key(|line| (line.len(), *line));
    lines[5].len() as u64
}
fn map_hashed(input: &Input) -> u64 {
    let mut map = HashMap::new();
    for number in &input.numbers {
        *map.entry(number % 20_000).or_insert(0u64) += 1;
    }
    map.len() as u64
}
fn map_words(input: &Input) -> u64 {
    let mut map: HashMap<&str, usize> = HashMap::new();
    for word in input.text.split('"') {
        *map.entry(word).or_default() += 1;
    }
    map.len() as u64
}
fn map_ordered(input: &Input) -> u64 {
    let mut map = BTreeMap::new();
    for number in &input.numbers {
        *map.entry(number).or_insert(0u64) += 1;
    }
    map.len() as u64
}
fn set(input: &Input) -> u64 {
    input.numbers.iter().collect::<HashSet<_>>().len() as u64
}
fn words(input: &Input) -> u64 {
    input.text.split_whitespace().map(|word| word.len() as u64).sum()
}
fn letters(input: &Input) -> u64 {
    input.text.chars().filter(|letter| letter.is_alphabetic()).count() as u64
}
fn upper(input: &Input) -> u64 {
    input.text.to_uppercase().len() as u64
}
fn replace(input: &Input) -> u64 {
    input.text.replace("\": [", " = ").len() as u64
}
fn parse(input: &Input) -> u64 {
    let parts = input.text.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    parts.filter_map(|part| part.parse::<f64>().ok()).sum::<f64>() as u64
}
fn tokens(input: &Input) -> u64 {
    let (mut depth, mut found, mut inside) = (0i64, 0u64, false);
    for byte in input.text.bytes() {
        match byte {
            b'"' => inside = !inside,
            b'{' | b'[' if !inside => depth += 1,
            b'}' | b']' if !inside => depth -= 1,
            b',' | b':' if !inside => found += depth as u64,
            b'0'..=b'9' => found += 1,
            _ => {}
        }
    }
    found
}
fn print(input: &Input) -> u64 {
    input.numbers.iter().map(|number| format!("{number:08x} {}", number / 3).len() as u64).sum()
}
fn iterate(input: &Input) -> u64 {
    let pairs = input.numbers.iter().zip(input.numbers.iter().skip(1));
    pairs.filter(|(a, b)| a < b).map(|(a, b)| u64::from(a ^ b)).sum()
}
fn matrix(input: &Input) -> u64 {
    let n = 1 + (input.size as f64).sqrt() as usize;
    let a: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| (i * j % 97) as f64).collect()).collect();
    let mut c = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..n {
            c[i][j] = (0..n).map(|k| a[i][k] * a[k][j]).sum();
        }
    }
    c[n / 2][n / 3] as u64
}
fn edit(input: &Input) -> u64 {
    let text = input.text.as_bytes();
    let (a, b) = (&text[..500], &text[text.len() / 2..text.len() / 2 + 500]);
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let best = (corner + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            corner = row[j + 1];
            row[j + 1] = best;
        }
    }
    row[b.len()] as u64
}
fn sieve(input: &Input) -> u64 {
    let mut composite = vec![false; 10 * input.size];
    for number in 2..composite.len() {
        if !composite[number] {
            for multiple in (number * number..composite.len()).step_by(number) {
                composite[multiple] = true;
            }
        }
    }
    composite.iter().filter(|found| !**found).count() as u64
}
fn queue(input: &Input) -> u64 {
    let mut queue = VecDeque::new();
    let mut sum = 0u64;
    for number in &input.numbers {
        queue.push_back(*number);
        if queue.len() > 300 {
            sum += u64::from(queue.pop_front().unwrap());
        }
    }
    sum
}
struct Tree(Option<Box<(Tree, u32, Tree)>>);
impl Tree {
    fn insert(&mut self, key: u32) {
        match &mut self.0 {
            None => self.0 = Some(Box::new((Tree(None), key, Tree(None)))),
            Some(node) if key < node.1 => node.0.insert(key),
            Some(node) => node.2.insert(key),
        }
    }
    fn depth(&self) -> u64 {
        self.0.as_ref().map_or(0, |node| 1 + node.0.depth().max(node.2.depth()))
    }
}
fn tree(input: &Input) -> u64 {
    let mut root = Tree(None);
    input.numbers.iter().for_each(|number| root.insert(*number));
    root.depth()
}
fn power(input: &Input) -> u64 {
    let modulus = (1u128 << 61) - 1;
    input.numbers.iter().map(|number| (0..8).fold(u128::from(*number), |x, _| x * x % modulus) as u64 & 1).sum()
}
trait Shape {
    fn area(&self) -> f64;
}
impl Shape for f64 {
    fn area(&self) -> f64 {
        self * self
    }
}
impl Shape for (f64, f64) {
    fn area(&self) -> f64 {
        self.0 * self.1
    }
}
fn dynamic(input: &Input) -> u64 {
    let made = input.numbers.iter().map(|number| -> Box<dyn Shape> {
        let side = f64::from(*number);
        if number & 64 == 0 { Box::new(side) } else { Box::new((side, 2.0)) }
    });
    made.collect::<Vec<_>>().iter().map(|shape| shape.area()).sum::<f64>() as u64
}

const PROGRAMS: [(&str, fn(&Input) -> u64); 22] = [
    ("sort", sort), ("sort-unstable", sort_unstable), ("sort-keys", sort_keys), ("map-hashed", map_hashed),
    ("map-words", map_words), ("map-ordered", map_ordered), ("set", set), ("words", words), ("letters", letters),
    ("upper", upper), ("replace", replace), ("parse", parse), ("tokens", tokens), ("print", print), ("iterate", iterate),
    ("matrix", matrix), ("edit", edit), ("sieve", sieve), ("queue", queue), ("tree", tree), ("power", power),
    ("dynamic", dynamic),
];

#[no_mangle]
#[inline(never)]
extern "C" fn work(at: usize, input: &Input) -> u64 {
    PROGRAMS[at].1(input) + 1
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let at = PROGRAMS.iter().position(|program| program.0 == words[1]).expect("the name of a program");
    let input = Input::new(words[2].parse().expect("a size"));
    let passes = words.get(3).map_or(1, |text| text.parse().expect("a number of passes"));
    black_box(PROGRAMS[at].1(&input));
    let mut least = f64::MAX;
    for _ in 0..passes {
        let before = cpu_seconds();
        black_box(work(at, &input));
        least = least.min(cpu_seconds() - before);
    }
    println!("{least:.9}");
}
