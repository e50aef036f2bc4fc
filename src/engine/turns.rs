//! Turns of applications, and what comes of them in the NICs.

use super::devices::{Action, Answer};
use super::run::{Engine, RunError};
use super::{Applications, ApplicationsError};
use crate::nic::Input;
use crate::trace::Sink;

impl Engine<'_> {
    /// An application has its turn: until it waits or goes, nothing else happens.
    pub(super) fn turn(&mut self, index: usize, sink: &mut dyn Sink) -> Result<(), RunError> {
        let Some(applications) = self.applications.take() else {
            return Err(ApplicationsError::Unserved { application: self.plan.applications[index].name.clone() }.into());
        };
        let done = self.converse(index, applications, sink);
        self.applications = Some(applications);
        done?;
        self.note_departures(sink)
    }

    /// Those who have gone while they waited take what they had out of the run. A well-behaved application goes in its turn:
    /// when the others are noticed is a matter of real time.
    pub(super) fn note_departures(&mut self, sink: &mut dyn Sink) -> Result<(), RunError> {
        while let Some(gone) = self.applications.as_deref_mut().and_then(|applications| applications.departed()) {
            self.devices.leave(gone, self.now);
            self.act(sink)?;
        }
        Ok(())
    }

    fn converse(
        &mut self,
        index: usize,
        applications: &mut dyn Applications,
        sink: &mut dyn Sink,
    ) -> Result<(), RunError> {
        applications.begin_turn(index);
        if let Some(woken) = self.devices.begin_turn(index, self.now) {
            applications.reply(index, &woken, None)?;
        }
        while let Some(request) = applications.request(index)? {
            let answer = self.devices.answer(index, request, self.now, applications);
            self.act(sink)?;
            let Some(Answer { reply, memory }) = answer else { return Ok(()) };
            applications.reply(index, &reply, memory)?;
        }
        self.devices.leave(index, self.now);
        self.act(sink)
    }

    /// Does what applications want done, and what follows from it.
    pub(super) fn act(&mut self, sink: &mut dyn Sink) -> Result<(), RunError> {
        while let Some(action) = self.devices.next_action() {
            let (node, input) = match action {
                Action::Connect { node, connection } => {
                    self.nics[node.index()].connect(connection);
                    continue;
                }
                Action::Register { node, region } => {
                    let registered = self.nics[node.index()].memory_mut().register_shared(region);
                    registered.expect("a region has memory and a key of its own");
                    continue;
                }
                Action::Deregister { node, rkey } => {
                    self.nics[node.index()].memory_mut().deregister(rkey);
                    continue;
                }
                Action::Tell { node, event } => {
                    self.tell(node, event, sink)?;
                    continue;
                }
                Action::Post { node, qpn, peer_qpn, work } => {
                    self.audit.posted_by_application(work.message, node, work.peer);
                    self.nics[work.peer.index()].announce(peer_qpn, work.message);
                    (node, Input::Post { qpn, work })
                }
                Action::Ring { node, qpn, entries, blue_flame } => (node, Input::Ring { qpn, entries, blue_flame }),
                Action::PostReceive { node, qpn, receive } => (node, Input::PostReceive { qpn, receive }),
                Action::Fail { node, qpn, cause } => (node, Input::FailQueuePair { qpn, cause }),
            };
            self.handle(node, input, sink)?;
            self.note_wake(node);
        }
        Ok(())
    }
}
