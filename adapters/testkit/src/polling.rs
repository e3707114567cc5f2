//! Futures, polled by hand: as often as a case wants, and then dropped or overtaken.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Remembers that it was woken, and wakes the thread.
struct Woken(std::thread::Thread, AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.1.store(true, Ordering::SeqCst);
        self.0.unpark();
    }
}

/// A future that is polled when it asks for it, and only then.
pub(crate) struct Polled<'f, T> {
    future: Option<Pin<Box<dyn Future<Output = T> + 'f>>>,
    woken: Arc<Woken>,
    waker: Waker,
    output: Option<T>,
}

impl<'f, T> Polled<'f, T> {
    /// Not polled yet.
    pub(crate) fn new(future: impl Future<Output = T> + 'f) -> Polled<'f, T> {
        let woken = Arc::new(Woken(std::thread::current(), AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&woken));
        Polled { future: Some(Box::pin(future)), woken, waker, output: None }
    }

    /// Polls it if it asked for it. True once it is done.
    pub(crate) fn try_poll(&mut self) -> bool {
        if let Some(future) = &mut self.future
            && self.woken.1.swap(false, Ordering::SeqCst)
            && let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&self.waker))
        {
            self.output = Some(output);
            self.future = None;
        }
        self.future.is_none()
    }

    /// Waits until it asks to be polled. False if it does not within the time.
    fn asks(&self, within: Duration) -> bool {
        let began = std::time::Instant::now();
        while !self.woken.1.load(Ordering::SeqCst) {
            let Some(left) = within.checked_sub(began.elapsed()) else { return false };
            std::thread::park_timeout(left.min(Duration::from_millis(10)));
        }
        true
    }

    /// Polls it up to `times`, each time it asks. True if it is done.
    pub(crate) fn poll(&mut self, times: usize) -> bool {
        for _ in 0..times {
            if self.future.is_none() {
                break;
            }
            while !self.asks(Duration::from_millis(100)) {}
            self.try_poll();
        }
        self.future.is_none()
    }

    /// Drives it to its end, if it comes within the time.
    pub(crate) fn end_within(&mut self, within: Duration) -> Option<T> {
        let began = std::time::Instant::now();
        while !self.try_poll() {
            if !self.asks(within.checked_sub(began.elapsed())?) {
                return None;
            }
        }
        self.output.take()
    }

    /// What came of it; none if it is not done. Dropped with that.
    pub(crate) fn output(self) -> Option<T> {
        self.output
    }
}

/// How long a future that is overtaking may ask for nothing before the others go on beside it:
/// it may be waiting for a lock of theirs.
const STUCK: Duration = Duration::from_millis(250);

/// Drives the first to its end ahead of the others; then the next. One that waits for those behind
/// it lets them go on.
pub(crate) fn finish_in_order<T>(mut futures: Vec<Polled<'_, T>>) -> Vec<T> {
    for at in 0..futures.len() {
        while !futures[at].try_poll() {
            if !futures[at].asks(STUCK) {
                for other in &mut futures {
                    other.try_poll();
                }
            }
        }
    }
    futures.into_iter().map(|f| f.output().expect("it was driven to its end")).collect()
}

/// Polls a future up to `times`, then drops it. What came of it, if it ended before.
pub(crate) fn poll_up_to<T>(times: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut polled = Polled::new(future);
    polled.poll(times);
    polled.output()
}
