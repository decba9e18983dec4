//! Groups made-up orders by customer and by day, in `HashMap`s with the standard library's random keys. Tests compile it
//! with a larger PLANTED, which makes `group_by` slower, and nothing else.
use std::collections::HashMap;
use std::hash::Hash;
use std::ptr::{read_volatile, write_volatile};

static PLANTED: u32 = 0;

struct Order {
    customer: String,
    day: u32,
    cents: u64,
}

#[inline(never)]
fn made_up(number: u32) -> Vec<Order> {
    (0..number)
        .map(|i| {
            let random = i.wrapping_mul(2_654_435_761) >> 7;
            Order { customer: format!("customer {}", random % 1009), day: random % 365, cents: u64::from(random % 9973) }
        })
        .collect()
}

/// Never inlined: its name has to be in the profile, once for each kind of key.
#[inline(never)]
fn group_by<K: Hash + Eq, F: Fn(&Order) -> K>(orders: &[Order], key: F) -> HashMap<K, u64> {
    let mut groups = HashMap::new();
    for order in orders {
        *groups.entry(key(order)).or_insert(0) += order.cents;
    }
    // Volatile, so that the loop is neither unrolled nor folded; `black_box` is too new for the oldest compilers.
    let mut sink = 0;
    for turn in 0..unsafe { read_volatile(&PLANTED) } {
        unsafe { write_volatile(&mut sink, turn) };
    }
    groups
}

#[inline(never)]
fn highest<K: Ord + Clone>(groups: &HashMap<K, u64>, number: usize) -> Vec<(u64, K)> {
    let mut all: Vec<(u64, K)> = groups.iter().map(|(key, cents)| (*cents, key.clone())).collect();
    all.sort_by(|a, b| b.cmp(a));
    all.truncate(number);
    all
}

fn main() {
    let orders = made_up(20_000);
    let by_customer = group_by(&orders, |order| order.customer.clone());
    let by_weekday = group_by(&orders, |order| order.day % 7);
    println!("{:?}", highest(&by_customer, 2));
    println!("{:?}", highest(&by_weekday, 2));
}
