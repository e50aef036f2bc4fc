//! One line per packet, for ladders and logs.

use std::fmt::{self, Write};

use super::{Packet, PfcFrame, RocePacket, Syndrome, rnr_timer};

impl RocePacket {
    fn line(&self) -> Result<String, fmt::Error> {
        let (psn, qp) = (self.bth.psn, self.bth.dest_qpn);
        let mut line = String::new();
        match self.aeth {
            Some(aeth) => {
                let msn = aeth.msn;
                match aeth.syndrome {
                    Syndrome::Ack { .. } => write!(line, "ACK psn={psn} msn={msn}")?,
                    Syndrome::RnrNak { timer } => write!(line, "RNR NAK psn={psn} wait {}", rnr_timer(timer))?,
                    Syndrome::Nak(code) => write!(line, "NAK psn={psn} {code}")?,
                    Syndrome::Reserved(octet) => write!(line, "AETH {octet:#04x} psn={psn} msn={msn}")?,
                }
            }
            None if self.cnp_reserved.is_some() => write!(line, "{} qp={qp}", self.bth.opcode)?,
            None => write!(line, "{} psn={psn} qp={qp} {} B", self.bth.opcode, self.payload.len())?,
        }
        if let Some(immediate) = self.immediate {
            write!(line, " imm={immediate:#010x}")?;
        }
        if self.ecn == super::Ecn::Ce {
            line.push_str(" CE");
        }
        Ok(line)
    }
}

impl PfcFrame {
    fn line(&self) -> Result<String, fmt::Error> {
        let mut line = String::from("PFC");
        let mut separator = "";
        for (class, quanta) in self.classes() {
            match quanta {
                0 => write!(line, "{separator} XON class {class}")?,
                _ => write!(line, "{separator} XOFF class {class} quanta {quanta}")?,
            }
            separator = ",";
        }
        if self.enabled == 0 {
            line.push_str(" of no class");
        }
        Ok(line)
    }
}

impl fmt::Display for RocePacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.line()?)
    }
}

impl fmt::Display for PfcFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.line()?)
    }
}

impl fmt::Display for Packet {
    /// `WRITE First psn=0 qp=0x000011 4096 B`, `NAK psn=100 sequence error`, `PFC XOFF class 0 quanta 65535`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Roce(packet) => packet.fmt(f),
            Self::Pfc(frame) => frame.fmt(f),
        }
    }
}
