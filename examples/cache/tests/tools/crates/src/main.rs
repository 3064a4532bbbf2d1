//! A session of redis-rs or fred. Arguments: the name of the client, and the port of the server. When it writes
//! `restart`, the server is to be started anew; a line of input says that it has been.

use std::error::Error;
use std::io::BufRead;
use std::time::Duration;

type Outcome = Result<(), Box<dyn Error>>;

const EXPIRED: &str = "__keyevent@*__:expired";

fn main() -> Outcome {
    let mut args = std::env::args().skip(1);
    let (client, port) = (args.next().ok_or("no client")?, args.next().ok_or("no port")?.parse()?);
    match &client[..] {
        "redis" => redis_rs(port)?,
        "fred" => tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(fred(port))?,
        _ => return Err("an unknown client".into()),
    }
    println!("all is well");
    Ok(())
}

fn wait_for_restart() -> Outcome {
    println!("restart");
    std::io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}

fn redis_rs(port: u16) -> Outcome {
    use redis::TypedCommands;

    let client = redis::Client::open(("127.0.0.1", port))?;
    let mut connection = client.get_connection()?;
    connection.set_ex("a", "1", 100)?;
    assert_eq!(connection.get("a")?.as_deref(), Some("1"));
    assert_eq!(connection.get("none")?, None);
    assert!((90..=100).contains(&connection.ttl("a")?.raw()));
    let replies: (i64, Option<String>, String) =
        redis::pipe().incr("n", 41).get("none").set("p", 1).query(&mut connection)?;
    assert_eq!(replies, (41, None, "OK".into()));
    let replies: (i64, Vec<Option<i64>>) = redis::pipe()
        .atomic()
        .set("t", 1)
        .ignore()
        .incr("t", 1)
        .mget(&["t", "none"])
        .query(&mut connection)?;
    assert_eq!(replies, (2, vec![Some(2), None]));
    let refused = redis::pipe().atomic().incr("t", 1).cmd("NONSENSE").query::<()>(&mut connection);
    assert!(refused.is_err());
    assert_eq!(connection.get("t")?.as_deref(), Some("2"));

    redis::cmd("CONFIG").arg("SET").arg("notify-keyspace-events").arg("Ex").exec(&mut connection)?;
    let mut listening = client.get_connection()?;
    let mut listener = listening.as_pubsub();
    listener.psubscribe(EXPIRED)?;
    redis::cmd("SET").arg("short").arg("v").arg("PX").arg(20).exec(&mut connection)?;
    let message = listener.get_message()?;
    assert_eq!(message.get_channel_name(), "__keyevent@0__:expired");
    assert_eq!(
        (message.get_pattern::<String>()?, message.get_payload::<String>()?),
        (EXPIRED.into(), "short".into())
    );

    wait_for_restart()?;
    assert!(connection.get("a").is_err(), "the old connection has ended");
    let mut connection = client.get_connection()?;
    assert_eq!(connection.get("a")?, None);
    connection.set("a", "new")?;
    assert_eq!(connection.get("a")?.as_deref(), Some("new"));
    Ok(())
}

async fn fred(port: u16) -> Outcome {
    use fred::prelude::*;

    let config = Config { server: ServerConfig::new_centralized("127.0.0.1", port), ..Config::default() };
    let mut builder = Builder::from_config(config);
    builder.set_policy(ReconnectPolicy::new_constant(0, 50));
    let client = builder.build()?;
    client.init().await?;
    let () = client.set("a", "1", Some(Expiration::EX(100)), None, false).await?;
    assert_eq!(client.get::<Option<String>, _>("a").await?.as_deref(), Some("1"));
    assert_eq!(client.get::<Option<String>, _>("none").await?, None);
    let pipeline = client.pipeline();
    let () = pipeline.incr_by("n", 41).await?;
    let () = pipeline.get("none").await?;
    let replies: (i64, Option<String>) = pipeline.all().await?;
    assert_eq!(replies, (41, None));
    let transaction = client.multi();
    let () = transaction.set("t", 1, None, None, false).await?;
    let () = transaction.incr("t").await?;
    let () = transaction.mget(vec!["t", "none"]).await?;
    let replies: (String, i64, Vec<Option<i64>>) = transaction.exec(true).await?;
    assert_eq!(replies, ("OK".into(), 2, vec![Some(2), None]));

    let events = || client.config_set("notify-keyspace-events", "Ex");
    events().await?;
    let listener = builder.build_subscriber_client()?;
    listener.init().await?;
    listener.manage_subscriptions();
    let mut events_seen = listener.keyspace_event_rx();
    let () = listener.psubscribe(EXPIRED).await?;
    let () = client.set("short", "v", Some(Expiration::PX(20)), None, false).await?;
    let event = events_seen.recv().await?;
    assert_eq!((event.db, &event.operation[..], event.key.as_str()), (0, "expired", Some("short")));

    wait_for_restart()?;
    // Both clients connect again by themselves, and the subscriber subscribes again.
    let () = client.set("a", "new", None, None, false).await?;
    assert_eq!(client.get::<Option<String>, _>("a").await?.as_deref(), Some("new"));
    events().await?;
    let mut heard = None;
    while heard.is_none() {
        let () = client.set("shorter", "v", Some(Expiration::PX(20)), None, false).await?;
        heard = tokio::time::timeout(Duration::from_millis(500), events_seen.recv()).await.ok();
    }
    assert_eq!(heard.ok_or("no event")??.key.as_str(), Some("shorter"));
    let () = client.quit().await?;
    Ok(())
}
