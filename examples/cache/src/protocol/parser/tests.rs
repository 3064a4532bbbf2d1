use super::*;

fn words(parser: &Parser, buffer: &[u8]) -> Vec<Vec<u8>> {
    parser.request(buffer).from(0).map(<[u8]>::to_vec).collect()
}

/// All requests of a stream that arrives in pieces of this size.
fn parse_all(stream: &[u8], piece: usize) -> Result<Vec<Vec<Vec<u8>>>, Failure> {
    let (mut parser, mut buffer, mut found) = (Parser::default(), Vec::new(), Vec::new());
    for piece in stream.chunks(piece) {
        buffer.extend_from_slice(piece);
        while let Some(len) = parser.parse(&buffer, true)? {
            found.push(words(&parser, &buffer));
            buffer.drain(..len);
        }
    }
    Ok(found)
}

fn only_violation(stream: &[u8], is_trusted: bool) -> String {
    let Failure(code, text) = Parser::default().parse(stream, is_trusted).expect_err("a violation");
    assert_eq!(code, "ERR");
    text.strip_prefix("Protocol error: ").expect("its kind").to_owned()
}

#[test]
fn requests_are_the_same_in_pieces_of_any_size() {
    let stream = b"*2\r\n$3\r\nGET\r\n$0\r\n\r\nPING\r\n*0\r\n*-1\r\n\r\n*3\r\n$3\r\nSET\r\n$4\r\n\r\n\r\n\r\n$1\r\n$\r\nset a \"b c\"\n";
    let whole = parse_all(stream, stream.len()).unwrap();
    let expected: [&[&[u8]]; 7] =
        [&[b"GET", b""], &[b"PING"], &[], &[], &[], &[b"SET", b"\r\n\r\n", b"$"], &[b"set", b"a", b"b c"]];
    assert_eq!(whole, expected);
    for piece in 1..stream.len() {
        assert_eq!(parse_all(stream, piece).unwrap(), whole, "pieces of {piece}");
    }
}

#[test]
fn what_breaks_the_protocol_is_named() {
    let cases: [(&[u8], &str); 9] = [
        (b"*x\r\n", "invalid multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*1\r\n:1\r\n", "expected '$', got ':'"),
        (b"*1\r\n\r\n", "expected '$', got '\r'"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"*1\r\n$ab\r\n", "invalid bulk length"),
        (b"get \"a\r\n", "unbalanced quotes in request"),
        (b"get \"a\"b\r\n", "unbalanced quotes in request"),
    ];
    for (stream, text) in cases {
        assert_eq!(only_violation(stream, true), text);
    }
    let endless = vec![b'1'; MAX_LINE + 2];
    assert_eq!(only_violation(&endless, true), "too big inline request");
    // In one piece, too.
    assert_eq!(only_violation(&[&endless[..], b"\r\n"].concat(), true), "too big inline request");
    let longest = [&endless[..MAX_LINE], b"\n"].concat();
    assert_eq!(Parser::default().parse(&longest, true), Ok(Some(MAX_LINE + 1)));
    assert_eq!(only_violation(&[b"*".as_slice(), &endless].concat(), true), "too big mbulk count string");
    assert_eq!(
        only_violation(&[b"*1\r\n$".as_slice(), &endless].concat(), true),
        "too big bulk count string"
    );
}

#[test]
fn a_client_that_is_not_authenticated_sends_little() {
    assert_eq!(only_violation(b"*11\r\n", false), "unauthenticated multibulk length");
    assert_eq!(only_violation(b"*1\r\n$16385\r\n", false), "unauthenticated bulk length");
    assert_eq!(Parser::default().parse(b"*10\r\n$16384\r\n", false), Ok(None));
}

#[test]
fn the_parser_says_how_much_an_argument_still_needs() {
    let mut parser = Parser::default();
    let buffer = b"*2\r\n$3\r\nGET\r\n$1000\r\nabc";
    assert_eq!(parser.parse(buffer, true), Ok(None));
    assert_eq!(parser.wants(buffer.len()), 999);
}

#[test]
fn quotes_and_escapes_of_inline_requests() {
    let cases: [(&[u8], &[&[u8]]); 6] = [
        (br#"a "b\x41\n\q" 'c\'d\n'"#, &[b"a", b"bA\nq", b"c'd\\n"]),
        (b"  \t a  ", &[b"a"]),
        (b"\"\" ''", &[b"", b""]),
        (b"", &[]),
        (br#"k"v""#, &[b"kv"]),
        (b"\x0ba\x0bb\x0c \"c\"\x0cd\te", &[b"a\x0bb\x0c", b"c", b"d", b"e"]),
    ];
    for (line, expected) in cases {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        assert!(inline::split(line, &mut bytes, &mut spans));
        let words: Vec<_> = spans.iter().map(|span| span.of(&bytes)).collect();
        assert_eq!(words, expected);
    }
}
