//! Who waits and who leads. There is no writer thread (A-7): a caller that finds the connection
//! free leads, and carries out everything that waits, in order, in groups (A-10).
//!
//! ```text
//! connection free, nobody waits ──▶ one submission, its own commit (direct)
//! connection free, others wait  ──▶ joins the end, leads groups until it is served
//! connection taken              ──▶ joins the end, sleeps
//! ```
//!
//! A leader that leaves wakes everyone who still waits, not only the next one: that one's future
//! may never be polled again, and then nobody would lead. So no caller starves. Groups are taken
//! from the front, and a leader serves few groups beyond its own, so none waits without bound.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};

use freehold_store::{StoreError, Submission};

use crate::writer::{Answer, Writer};

/// The most submissions in one commit.
pub(crate) const GROUP_MAX: usize = 64;

/// How many groups a leader serves beyond its own: less waking, bounded delay.
const GROUPS_BEYOND_OWN: usize = 2;

/// The connection that writes, and those who wait for it.
#[derive(Debug)]
pub(crate) struct Queue {
    writer: Mutex<Writer>,
    waiting: Mutex<VecDeque<Arc<Ticket>>>,
}

/// A submission that waits.
#[derive(Debug)]
struct Ticket {
    submission: Submission,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// Whom to wake.
    Waiting(Waker),
    Answered(Box<Answer>),
    Taken,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is half-done behind these locks when a panic unwinds: an open transaction rolls
    // back, and a group answers its members.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ticket {
    /// The answer if it is there; else whom to wake when it is.
    fn take(&self, waker: &Waker) -> Option<Answer> {
        let mut state = lock(&self.state);
        match &mut *state {
            State::Waiting(known) => {
                known.clone_from(waker);
                None
            }
            State::Answered(_) => match std::mem::replace(&mut *state, State::Taken) {
                State::Answered(answer) => Some(*answer),
                State::Waiting(_) | State::Taken => None,
            },
            State::Taken => None,
        }
    }

    fn answer(&self, answer: Answer) {
        let mut state = lock(&self.state);
        if let State::Waiting(waker) =
            std::mem::replace(&mut *state, State::Answered(Box::new(answer)))
        {
            drop(state);
            waker.wake();
        }
    }

    fn is_answered(&self) -> bool {
        !matches!(*lock(&self.state), State::Waiting(_))
    }

    fn wake(&self) {
        let waker = match &*lock(&self.state) {
            State::Waiting(waker) => Some(waker.clone()),
            State::Answered(_) | State::Taken => None,
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Members of a group under way. If a panic ends it, they are told that nobody knows.
struct Group(Vec<Arc<Ticket>>);

impl Drop for Group {
    fn drop(&mut self) {
        for ticket in self.0.drain(..) {
            if !ticket.is_answered() {
                let detail = "the caller that led this group panicked".to_owned();
                ticket.answer(Err(StoreError::Unknown { detail }));
            }
        }
    }
}

impl Queue {
    pub(crate) fn new(writer: Writer) -> Queue {
        Queue { writer: Mutex::new(writer), waiting: Mutex::new(VecDeque::new()) }
    }

    /// Carries out a submission, alone or in a group.
    pub(crate) fn submit<'q>(&'q self, submission: &'q Submission) -> Submit<'q> {
        Submit { queue: self, submission, ticket: None, done: false }
    }

    fn lead(&self) -> Option<Lead<'_>> {
        match self.writer.try_lock() {
            Ok(writer) => Some(Lead { queue: self, writer: Some(writer) }),
            Err(TryLockError::Poisoned(poisoned)) => {
                Some(Lead { queue: self, writer: Some(poisoned.into_inner()) })
            }
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn nobody_waits(&self) -> bool {
        lock(&self.waiting).is_empty()
    }
}

/// The right to write, while one has it.
struct Lead<'q> {
    queue: &'q Queue,
    writer: Option<MutexGuard<'q, Writer>>,
}

impl Lead<'_> {
    /// Serves one group from the front of the queue; whether there was one.
    fn group(&mut self) -> bool {
        let members: Vec<Arc<Ticket>> = {
            let mut waiting = lock(&self.queue.waiting);
            let count = waiting.len().min(GROUP_MAX);
            waiting.drain(..count).collect()
        };
        let Some(writer) = self.writer.as_mut() else { return false };
        if members.is_empty() {
            return false;
        }
        let group = Group(members);
        let submissions: Vec<&Submission> = group.0.iter().map(|t| &t.submission).collect();
        let answers = match submissions.as_slice() {
            [only] => vec![writer.one(only)],
            many => writer.group(many),
        };
        for (ticket, answer) in group.0.iter().zip(answers) {
            ticket.answer(answer);
        }
        true
    }

    fn some_groups(&mut self) {
        for _ in 0..GROUPS_BEYOND_OWN {
            if !self.group() {
                break;
            }
        }
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        // First the lock, then the look: whoever joined the queue and found the lock taken is
        // seen here.
        drop(self.writer.take());
        let waiting: Vec<Arc<Ticket>> = lock(&self.queue.waiting).iter().cloned().collect();
        for ticket in waiting {
            ticket.wake();
        }
    }
}

/// A submission on its way. All its work is done inside single polls. Dropped while it waits, it
/// is taken out of the queue; dropped while a leader works on it, it is done whole or not at all.
#[must_use = "a submission does nothing unless it is polled"]
pub(crate) struct Submit<'q> {
    queue: &'q Queue,
    submission: &'q Submission,
    ticket: Option<Arc<Ticket>>,
    done: bool,
}

impl Future for Submit<'_> {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let this = &mut *self;
        let ticket = match &this.ticket {
            Some(ticket) => ticket,
            None => {
                if this.queue.nobody_waits()
                    && let Some(mut lead) = this.queue.lead()
                {
                    this.done = true;
                    let answer = match lead.writer.as_mut() {
                        Some(writer) => writer.one(this.submission),
                        None => return Poll::Pending,
                    };
                    lead.some_groups();
                    return Poll::Ready(answer);
                }
                let ticket = Arc::new(Ticket {
                    submission: this.submission.clone(),
                    state: Mutex::new(State::Waiting(context.waker().clone())),
                });
                lock(&this.queue.waiting).push_back(Arc::clone(&ticket));
                this.ticket.insert(ticket)
            }
        };
        // The waker is known before the lock is tried, so that no answer and no call is missed.
        let mut answer = ticket.take(context.waker());
        if answer.is_none()
            && let Some(mut lead) = this.queue.lead()
        {
            while !ticket.is_answered() && lead.group() {}
            lead.some_groups();
            drop(lead);
            answer = ticket.take(context.waker());
        }
        match answer {
            Some(answer) => {
                this.done = true;
                Poll::Ready(answer)
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for Submit<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take().filter(|_| !self.done) {
            lock(&self.queue.waiting).retain(|other| !Arc::ptr_eq(other, &ticket));
        }
    }
}

#[cfg(test)]
mod tests;
