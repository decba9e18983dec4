//! regex-lite: find addresses and dates in a made-up text.
use regex_lite::Regex;

fn main() {
    let mut text = String::new();
    for n in 0..100 {
        text.push_str(&format!("On 2024-{:02}-{:02} user{}@example{}.org wrote of {} things. ", n % 12 + 1, n % 28 + 1, n, n % 7, n));
    }
    let address = Regex::new(r"[a-z]+\d*@([a-z0-9]+)\.org").unwrap();
    let date = Regex::new(r"(\d{4})-(\d\d)-(\d\d)").unwrap();
    let found: usize = address.captures_iter(&text).map(|all| all[1].len()).sum();
    let days: usize = date.captures_iter(&text).map(|all| all[3].parse::<usize>().unwrap()).sum();
    println!("{} {} {}", text.len(), found, days);
}
