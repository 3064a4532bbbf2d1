//! What the parser takes and what it refuses.

use super::*;

const ORDERS: &str = "order_id,item,quantity,amount_cents,placed_at_ms\n";

/// The orders, and the bad lines with their reasons; or what is wrong with the file.
fn orders(file: impl Read) -> Result<(Vec<PlacedOrder>, Vec<String>), String> {
    let (mut found, mut bad) = (Vec::new(), Vec::new());
    let enter = |order| {
        found.push(order);
        Ok(())
    };
    let count = read(file, enter, |number, reason| bad.push(format!("line {number}: {reason}")));
    let count = count.map_err(|error| error.to_string())?;
    assert_eq!((count.read, count.bad), ((found.len() + bad.len()) as u64, bad.len() as u64));
    Ok((found, bad))
}

/// The line number and the reason, as they are printed, for a line after the usual header.
fn reason(line: &[u8]) -> String {
    let file = [ORDERS.as_bytes(), line, b"\n7,bolt,1,2,3\n"].concat();
    let (found, mut bad) = orders(&file[..]).expect("a file");
    assert!(matches!(&found[..], [order] if order.order_id == 7) && bad.len() == 1, "{found:?} {bad:?}");
    bad.remove(0)
}

fn order() -> PlacedOrder {
    PlacedOrder { order_id: 1, item: "bolt".into(), quantity: 2, amount: 350, placed_at: 12 }
}

#[test]
fn a_good_line_is_read_in_its_usual_forms() {
    for line in ["1,bolt,2,350,12", "1,bolt,2,350,12\r\n", "\"1\",\"bolt\",\"2\",350,\"12\"\n\n"] {
        let found = orders(format!("\u{feff}{ORDERS}\n{line}").as_bytes());
        assert_eq!(found, Ok((vec![order()], Vec::new())));
    }
}

#[test]
fn a_bad_line_has_its_number_and_reason_and_costs_itself_only() {
    assert!(
        reason(b"1,bolt,0,5,0").starts_with("line 2: quantity is \"0\"; it must be a whole number from 1")
    );
    assert!(reason(b"1,bolt,1,-5,0").contains("amount_cents is \"-5\""));
    assert!(reason(b"1,bolt,1,+5,0").contains("amount_cents is \"+5\""));
    assert!(reason(b"1,bolt,1,3.50,0").contains("amount_cents is \"3.50\""));
    assert!(reason(b"1,bolt,1,99999999999999999999999,0").contains("to 1000000000000"));
    assert!(reason(b"1,bolt,4294967296,5,0").contains("to 4294967295"));
    assert!(reason(b"1,bolt,1,5,1700000000000000").contains("placed_at_ms"));
    assert!(reason(b",bolt,1,5,0").contains("order_id is \"\""));
    assert!(reason(b"1,a bolt,1,5,0").contains("item is \"a bolt\""));
    assert!(reason(b"1, bolt,1,5,0").contains("item is \" bolt\""), "a space is a part of its field");
    assert!(reason(b"1,bolt, 1,5,0").contains("quantity is \" 1\""));
    assert!(reason("1,bo\u{200b}lt,1,5,0".as_bytes()).contains("visible"));
    assert!(reason("\"\u{feff}1\",bolt,1,5,0".as_bytes()).contains("order_id is"));
    assert!(reason(b"a-1,bolt,1,5,0").contains("order_id is \"a-1\"; it must be a whole number from 0"));
    assert!(reason(b"007,bolt,1,5,0").contains("leading zeros"));
    assert!(reason(b"1,bolt,1,5").contains("number of columns is 4, not 5"));
    assert!(reason(b"1,bolt,1,5,0,0,0,0").contains("number of columns is 8"));
    assert!(reason(b"\"1,bolt,1,5,0").contains("quotation mark"));
    assert!(reason(b"1,bo\"lt,1,5,0").contains("quotation mark"));
    assert!(reason(b"1,\"bo\"lt,1,5,0").contains("quotation mark"));
    assert!(reason(b"1,\"bolt\" ,1,5,0").contains("quotation mark"));
    assert!(reason(b"1,\"bolt\"\",1,5,0").contains("quotation mark"));
    assert!(reason(b"1,b\xff,1,5,0").contains("UTF-8"));
    assert!(reason(&[b'9'; 3 * MAX_LINE]).contains("longer than 4096"));
    assert!(reason(&[b"1,bolt,1,5,0", &[b' '; MAX_LINE][..], b"0"].concat()).contains("longer than 4096"));
    assert!(reason(&[&[b' '; MAX_LINE + 1][..], b"1,bolt,1,5,0"].concat()).contains("longer than 4096"));
}

#[test]
fn quotation_marks_are_doubled_within_quotation_marks() {
    let file = format!("{ORDERS}1,\"3\"\",4\"\"\",1,5,0\n2,\"\"\"\",1,5,0\n");
    let (found, _) = orders(file.as_bytes()).expect("a file");
    assert_eq!(found.iter().map(|order| &*order.item).collect::<Vec<_>>(), ["3\",4\"", "\""]);
}

#[test]
fn columns_go_by_their_names() {
    let file = "placed_at_ms,\"amount_cents\",item,order_id,quantity\n12,350,bolt,1,2\n";
    assert_eq!(orders(file.as_bytes()), Ok((vec![order()], Vec::new())));
}

#[test]
fn a_wrong_header_ends_the_reading_and_says_what_is_wrong() {
    for (file, wrong) in [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ("1,bolt,1,5,0\n2,bolt,1,5,0\n", "the first line is no header"),
        ("\"order_id,item\n", "the first line is no header: a quotation mark"),
        ("order_id,item,quantity,amount_cents\n", "lacks the column placed_at_ms"),
        ("order_id,item,quantity,amount,placed_at_ms\n", "unknown column \"amount\""),
        ("order_id,item,item,quantity,amount_cents,placed_at_ms\n", "has the column item twice"),
        ("order_id,item,quantity,amount_cents,placed_at_ms,note\n", "unknown column \"note\""),
    ] {
        let said = orders(file.as_bytes()).expect_err(file);
        assert!(said.contains(wrong) && said.contains("order_id,item,quantity"), "{file:?}: {said}");
    }
    assert!(orders(&b"\xff\xfe\n1,bolt,1,5,0\n"[..]).is_err_and(|said| said.contains("UTF-8")));
    assert_eq!(orders(ORDERS.as_bytes()), Ok((Vec::new(), Vec::new())), "a header alone");
}

#[test]
fn a_failing_reader_ends_the_reading() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("gone"))
        }
    }
    assert_eq!(orders(ORDERS.as_bytes().chain(Failing)), Err("gone".to_owned()));
}
