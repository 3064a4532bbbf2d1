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
    for (line, wrong) in [
        ("1,bolt,0,5,0", "line 2: quantity is \"0\"; it must be a whole number from 1 to 4294967295"),
        ("1,bolt,4294967296,5,0", "quantity is \"4294967296\""),
        ("1,bolt,1,-5,0", "amount_cents is \"-5\""),
        ("1,bolt,1,+5,0", "amount_cents is \"+5\""),
        ("1,bolt,1,3.50,0", "amount_cents is \"3.50\""),
        ("1,bolt,1,99999999999999999999999,0", "to 1000000000000"),
        ("1,bolt,1,5,1700000000000000", "placed_at_ms"),
        (",bolt,1,5,0", "order_id is \"\""),
        ("a-1,bolt,1,5,0", "order_id is \"a-1\"; it must be a whole number from 0"),
        ("\"\u{feff}1\",bolt,1,5,0", "order_id is"),
        ("1,a bolt,1,5,0", "item is \"a bolt\""),
        ("1, bolt,1,5,0", "item is \" bolt\""),
        ("1,bo\u{200b}lt,1,5,0", "visible"),
        ("1,bolt, 1,5,0", "quantity is \" 1\""),
        ("1,bolt,1,5", "number of columns is 4, not 5"),
        ("1,bolt,1,5,0,0,0,0", "number of columns is 8"),
        ("1,\"bo,lt\",1,5,0", "quotation mark"),
        ("\"1,bolt,1,5,0", "quotation mark"),
        ("1,bo\"lt,1,5,0", "quotation mark"),
        ("1,\"bolt\" ,1,5,0", "quotation mark"),
        ("1,\",1,5,0", "quotation mark"),
    ] {
        let reason = reason(line.as_bytes());
        assert!(reason.contains(wrong), "{line}: {reason}");
    }
    assert!(reason(b"1,b\xff,1,5,0").contains("UTF-8"));
}

#[test]
fn a_wrong_header_ends_the_reading_and_says_what_must_be() {
    for file in [
        "",
        "\n \n",
        "1,bolt,1,5,0\n",
        "\"order_id,item\n",
        "item,order_id,quantity,amount_cents,placed_at_ms\n",
    ] {
        let said = orders(file.as_bytes()).expect_err(file);
        assert_eq!(said, format!("the first line must be {}", ORDERS.trim_end()));
    }
    assert!(orders(&b"\xff\xfe\n1,bolt,1,5,0\n"[..]).is_err());
    assert_eq!(orders(ORDERS.as_bytes()), Ok((Vec::new(), Vec::new())), "a header alone");
}
