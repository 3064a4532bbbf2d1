use std::time::Duration;

use super::TWO;
use super::support::Server;
use super::support::client::Value;

#[test]
fn a_message_reaches_subscribers_of_all_threads() {
    let server = Server::cache(&["--threads", "3"]);
    let mut subscribers: Vec<_> = (0..9).map(|_| server.connect()).collect();
    for (number, subscriber) in subscribers.iter_mut().enumerate() {
        if number % 2 == 0 {
            subscriber.run("HELLO 3");
        }
        assert_eq!(subscriber.run("SUBSCRIBE news").elements()[2], Value::Integer(1));
    }
    let mut publisher = server.connect();
    for text in ["one", "two", "three"] {
        assert_eq!(publisher.run(&format!("PUBLISH news {text}")).integer(), 9);
    }
    for (number, subscriber) in subscribers.iter_mut().enumerate() {
        for text in ["one", "two", "three"] {
            let expected = ["message", "news", text].map(Value::bulk).to_vec();
            let expected = if number % 2 == 0 { Value::Push(expected) } else { Value::Array(expected) };
            assert_eq!(subscriber.read(), expected);
        }
    }
    drop(subscribers.split_off(4));
    super::time::wait_for(|| publisher.run("PUBLISH news again").integer() == 4);
}

/// A subscriber that does not read is cut off; the publisher and the others do not notice.
#[test]
fn a_subscriber_that_does_not_read_is_cut_off() {
    let server = Server::cache(TWO);
    let (mut deaf, mut good, mut publisher) = (server.connect(), server.connect(), server.connect());
    deaf.run("SUBSCRIBE news");
    good.run("SUBSCRIBE news");
    let text = "x".repeat(1_000_000);
    let mut sent = 0;
    while publisher.run_args(&["PUBLISH", "news", &text]).integer() == 2 {
        assert_eq!(good.read().elements()[2].text().len(), text.len());
        sent += 1;
        assert!(sent < 500, "it was never cut off");
    }
    assert!(sent > 20, "{sent}");
    assert!(good.hears_within(Duration::from_secs(10)));
}
