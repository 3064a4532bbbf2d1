//! What a worker of `orders` reads from the broker: messages of a log with any subject, headers, payload
//! and time, made of lines that are nearly right and of bytes of any kind; and the messages that an owner
//! begins with. Nothing panics, and two owners write the same lines.

#![no_main]

use libfuzzer_sys::fuzz_target;
use orders::sandbox::{Message, Sandbox};

/// Items of both partitions, and what is no item.
const ITEMS: &[&str] =
    &["\"item-1\"", "\"item-2\"", "\"nut\"", "\"\\u0000\"", "\"\u{fc}\"", "7", "null", "\"\""];
const SUBJECTS: &[&str] =
    &["shop.0.orders", "shop.0.payments", "shop.0.ticks", "shop.0.refunds", "shop", "", "a.b.orders"];
const NUMBERS: &[&str] =
    &["1", "2", "3", "0", "5", "-1", "18446744073709551615", "1e3", "\"1\"", "[]", "1.5"];
const NAMES: &[&str] = &["Shop-Input", "Shop-Digest", "Shop-Ahead", "Nats-Msg-Id"];

fuzz_target!(|data: &[u8]| {
    let (mut sandbox, mut rest, mut sequence, mut time) = (Sandbox::default(), data, 0, 1_000_000_000_i64);
    while let [kind, len, after @ ..] = rest {
        let (chosen, left) = after.split_at(usize::from(*len).min(after.len()));
        rest = left;
        sequence += 1;
        let subject = SUBJECTS[usize::from(kind >> 4) % SUBJECTS.len()];
        // The broker's time may stand, or go back.
        time = time.wrapping_add(i64::from(chosen.first().copied().unwrap_or(1) as i8) * 1_000_000);
        let payload = match kind & 3 {
            0 => chosen.to_vec(),
            1 => lines(chosen, order),
            _ => lines(chosen, payment),
        };
        let message = Message { sequence, time, subject, headers: headers(chosen), payload };
        match kind >> 2 & 3 {
            0 => sandbox.restart(),
            1 => sandbox.begin(&message),
            _ => {}
        }
        sandbox.log(&message);
    }
});

fn lines(bytes: &[u8], line: fn(&[u8; 4]) -> String) -> Vec<u8> {
    bytes.as_chunks().0.iter().map(line).collect::<String>().into_bytes()
}

fn pick(words: &[&'static str], at: u8) -> &'static str {
    words[usize::from(at) % words.len()]
}

fn order(&[id, item, quantity, amount]: &[u8; 4]) -> String {
    let (item, quantity) = (pick(ITEMS, item), pick(NUMBERS, quantity));
    let end = if amount & 128 == 0 { "}\n" } else { ",\"more\":{}}\n" };
    format!(
        "{{\"order_id\":{},\"item\":{item},\"quantity\":{quantity},\"amount_cents\":{}{end}",
        id % 16,
        amount % 4
    )
}

fn payment(&[id, order, item, amount]: &[u8; 4]) -> String {
    let item = if item < 128 { String::new() } else { format!(",\"item\":{}", pick(ITEMS, item)) };
    let amount = if amount < 200 { (amount % 4).to_string() } else { pick(NUMBERS, amount).to_owned() };
    format!(
        "{{\"payment_id\":\"p{}\",\"order_id\":{}{item},\"amount_cents\":{amount}}}\n",
        id % 32,
        order % 16
    )
}

fn headers(bytes: &[u8]) -> Vec<(&'static str, &'static str)> {
    bytes.as_chunks().0.iter().map(|&[name, value]| (pick(NAMES, name), pick(NUMBERS, value))).collect()
}
