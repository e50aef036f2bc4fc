//! The queues in front of a line, and the frame on it.

use std::collections::VecDeque;

use super::{EgressConfig, PerClass, Pools, Scheduler};
use crate::base::Class;
use crate::trace::Queue;

/// Everything a port wants to send: the express queue, one queue per class, and the frame being serialized.
#[derive(Clone, Debug)]
pub struct Egress<T> {
    express: VecDeque<T>,
    classes: PerClass<VecDeque<T>>,
    paused: PerClass<bool>,
    scheduler: Scheduler,
    on_line: Option<(Queue, T)>,
}

impl<T> Egress<T> {
    pub fn new(config: &EgressConfig) -> Self {
        let class_count = Pools::new(config.total, &config.shares).count();
        Self {
            express: VecDeque::new(),
            classes: Default::default(),
            paused: Default::default(),
            scheduler: Scheduler::new(config.scheduling, config.weights, class_count),
            on_line: None,
        }
    }

    /// Queues a frame; returns how many now wait there.
    pub fn push(&mut self, queue: Queue, frame: T) -> usize {
        let frames = match queue {
            Queue::Express => &mut self.express,
            Queue::Class(class) => &mut self.classes[class.index()],
        };
        frames.push_back(frame);
        frames.len()
    }

    /// Puts the next frame on an idle line: the express queue first, then the scheduler's choice among the classes
    /// that are not paused. `None` if the line is busy or nothing may go.
    ///
    /// * Source: timing rule 4; seeds/001 "Transmit scheduling".
    pub fn choose(&mut self) -> Option<(Queue, &mut T)> {
        self.choose_if(|_| true)
    }

    /// The same, where a class whose first frame `may_start` denies cannot send: its frames keep their order. The
    /// express queue is not asked.
    pub fn choose_if(&mut self, may_start: impl Fn(&T) -> bool) -> Option<(Queue, &mut T)> {
        if self.on_line.is_some() {
            return None;
        }
        let (queue, frame) = match self.express.pop_front() {
            Some(frame) => (Queue::Express, frame),
            None => {
                let (classes, paused) = (&self.classes, &self.paused);
                let can_send = |c: Class| !paused[c.index()] && classes[c.index()].front().is_some_and(&may_start);
                let class = self.scheduler.serve(can_send)?;
                (Queue::Class(class), self.classes[class.index()].pop_front()?)
            }
        };
        let (queue, frame) = self.on_line.insert((queue, frame));
        Some((*queue, frame))
    }

    /// The first frame of every class that is not paused.
    pub fn heads(&self) -> impl Iterator<Item = &T> {
        self.classes.iter().zip(self.paused).filter(|(_, paused)| !paused).filter_map(|(frames, _)| frames.front())
    }

    /// Takes the frame off the line: its last bit has left. `None` if the line was idle.
    pub fn finish(&mut self) -> Option<(Queue, T)> {
        self.on_line.take()
    }

    pub fn set_paused(&mut self, class: Class, paused: bool) {
        self.paused[class.index()] = paused;
    }

    pub fn is_line_idle(&self) -> bool {
        self.on_line.is_none()
    }

    /// The frames that wait or are on the line, in no particular order.
    pub fn frames(&self) -> impl Iterator<Item = &T> {
        let on_line = self.on_line.iter().map(|(_, frame)| frame);
        self.express.iter().chain(self.classes.iter().flatten()).chain(on_line)
    }

    /// Frames that wait or are on the line.
    pub fn frame_count(&self) -> usize {
        let waiting: usize = self.classes.iter().map(VecDeque::len).sum();
        self.express.len() + waiting + usize::from(self.on_line.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(n: u8) -> Queue {
        Queue::Class(Class::new(n).unwrap())
    }

    fn drain(egress: &mut Egress<&'static str>) -> Vec<&'static str> {
        let mut order = Vec::new();
        while egress.choose().is_some() {
            order.push(egress.finish().unwrap().1);
        }
        order
    }

    #[test]
    fn express_frames_go_ahead_of_every_class_and_in_their_order() {
        let mut egress = Egress::new(&EgressConfig::default());
        egress.push(class(0), "data");
        egress.push(class(1), "ack");
        egress.push(Queue::Express, "xoff");
        egress.push(Queue::Express, "cnp");
        assert_eq!(drain(&mut egress), ["xoff", "cnp", "ack", "data"]);
    }

    #[test]
    fn a_paused_class_waits_and_the_express_queue_does_not() {
        let mut egress = Egress::new(&EgressConfig::default());
        egress.push(class(0), "data");
        egress.push(Queue::Express, "xon");
        egress.set_paused(Class::default(), true);
        assert_eq!(drain(&mut egress), ["xon"]);
        egress.set_paused(Class::default(), false);
        assert_eq!(drain(&mut egress), ["data"]);
    }

    #[test]
    fn a_frame_that_may_not_start_holds_its_class_back_and_no_other() {
        let mut egress = Egress::new(&EgressConfig::default());
        egress.push(class(1), "not yet");
        egress.push(class(1), "behind it");
        egress.push(class(0), "data");
        assert_eq!(egress.heads().copied().collect::<Vec<_>>(), ["data", "not yet"]);
        assert_eq!(egress.choose_if(|frame| *frame != "not yet").map(|(_, frame)| *frame), Some("data"));
        egress.finish();
        assert!(egress.choose_if(|frame| *frame != "not yet").is_none());
        assert_eq!(drain(&mut egress), ["not yet", "behind it"]);
    }

    #[test]
    fn a_busy_line_chooses_nothing() {
        let mut egress = Egress::new(&EgressConfig::default());
        egress.push(class(0), "first");
        egress.push(class(0), "second");
        assert!(egress.choose().is_some());
        assert!(egress.choose().is_none());
        assert_eq!(egress.frame_count(), 2);
    }
}
