//! The changes of the bucket, as a worker sees them.

use std::time::Duration;

use async_nats::jetstream::kv::{Entry, Store};
use futures_util::StreamExt;
use tokio::sync::mpsc;

use super::names;

/// The pause before the bucket is watched again.
const PAUSE: Duration = Duration::from_millis(100);

/// Passes the changes of workers' entries on, until the worker no longer listens. The worker changes its own
/// several times in the length of a lease, so a watch that is silent for that long is broken.
pub(crate) async fn follow(bucket: Store, lease: Duration, changes: mpsc::UnboundedSender<Entry>) {
    let mut failed = false;
    while !changes.is_closed() {
        match bucket.watch_with_history(names::worker("*")).await {
            Ok(mut watch) => {
                failed = false;
                while let Ok(Some(Ok(entry))) = shardwheel::timeout(lease, watch.next()).await {
                    // The loop above finds out.
                    let _ = changes.send(entry);
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut failed, true) {
                    say!("the bucket is not seen: {error}; trying again");
                }
            }
        }
        shardwheel::sleep(PAUSE).await;
    }
}
