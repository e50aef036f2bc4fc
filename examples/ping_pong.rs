//! Two processes exchange SENDs and WRITEs through two NICs.
//!
//! ```console
//! $ rocemu run examples/ping-pong.toml --exec client=ping_pong --exec server=ping_pong
//! ```
//!
//! The client SENDs a ball; the server WRITEs it back into the client's memory, with the number of the round as immediate
//! data. Every time that is printed is emulated, and the same on every run.

use std::error::Error;
use std::process::ExitCode;

use rocemu::host::{
    CompletionOpcode, CompletionQueue, Device, MemoryRegion, QueuePair, QueuePairConfig, Status, WorkRequest,
};

const ROUNDS: u32 = 10;
const BALL: u64 = 4_096;

fn main() -> ExitCode {
    // As `rocemu run --exec` sets them.
    let [socket, name] = ["ROCEMU_SOCKET", "ROCEMU_APPLICATION"].map(|key| std::env::var(key).unwrap_or_default());
    let played = match name.as_str() {
        "client" => Player::sit_down(&socket, &name).and_then(Player::serve_balls),
        "server" => Player::sit_down(&socket, &name).and_then(Player::return_balls),
        _ => Err("set ROCEMU_SOCKET to the socket of a NIC, and ROCEMU_APPLICATION to client or server".into()),
    };
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ping_pong: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Player {
    device: Device,
    cq: CompletionQueue,
    qp: QueuePair,
    ball: MemoryRegion,
    /// Where the other side keeps its ball.
    address: u64,
    rkey: u32,
}

impl Player {
    fn sit_down(socket: &str, name: &str) -> Result<Self, Box<dyn Error>> {
        let device = Device::open(socket, name)?;
        let cq = device.create_cq(64)?;
        let mut qp = device.create_qp(&cq, &cq, &QueuePairConfig::default())?;
        let ball = device.reg_mr_remote(BALL)?;
        for wr_id in 0..4 {
            qp.post_recv(wr_id, &[ball.sge(0..BALL)])?;
        }
        // Where the ball may be thrown to goes along with the connection.
        let mut place = ball.address().to_le_bytes().to_vec();
        place.extend(ball.rkey().to_le_bytes());
        let peer = qp.connect("table 1", &place)?;
        println!("{name} at {}: connected to queue pair {} of {}", device.node(), peer.qpn, peer.node);
        let (address, rkey) = peer.private_data.split_at_checked(8).ok_or("the other side keeps no ball")?;
        let (address, rkey) = (u64::from_le_bytes(address.try_into()?), u32::from_le_bytes(rkey.try_into()?));
        Ok(Self { device, cq, qp, ball, address, rkey })
    }

    fn serve_balls(mut self) -> Result<(), Box<dyn Error>> {
        for round in 0..ROUNDS {
            self.ball.write(0, &vec![round as u8; BALL as usize]);
            let thrown_ps = self.device.now_ps();
            self.qp.post_send(&WorkRequest::send(100).gather(&[self.ball.sge(0..BALL)])?)?;
            self.qp.ring_doorbell()?;
            let immediate = self.wait_for_the_ball()?;
            let mut octets = vec![0; BALL as usize];
            self.ball.read(0, &mut octets);
            if immediate != Some(round) || octets.iter().any(|octet| *octet != !(round as u8)) {
                return Err(format!("round {round}: another ball came back").into());
            }
            println!("round {round}: back after {} ps", self.device.now_ps() - thrown_ps);
        }
        Ok(())
    }

    fn return_balls(mut self) -> Result<(), Box<dyn Error>> {
        for round in 0..ROUNDS {
            self.wait_for_the_ball()?;
            let mut octets = vec![0; BALL as usize];
            self.ball.read(0, &mut octets);
            octets.iter_mut().for_each(|octet| *octet = !*octet);
            self.ball.write(0, &octets);
            let write = WorkRequest::write(200, self.address, self.rkey).immediate(round);
            self.qp.post_send(&write.gather(&[self.ball.sge(0..BALL)])?)?;
            self.qp.ring_doorbell()?;
        }
        // The last ball has come back when its WRITE is completed.
        loop {
            let completion = self.cq.wait()?;
            if completion.opcode == CompletionOpcode::Write && completion.wr_id == 200 {
                println!("server: all balls returned at {} ps", self.device.now_ps());
                return Ok(());
            }
        }
    }

    /// Waits until a receive completes, and posts another one.
    fn wait_for_the_ball(&mut self) -> Result<Option<u32>, Box<dyn Error>> {
        loop {
            let completion = self.cq.wait()?;
            if completion.status != Status::Success {
                return Err(format!("work request {} ended with {:?}", completion.wr_id, completion.status).into());
            }
            if matches!(completion.opcode, CompletionOpcode::Receive | CompletionOpcode::ReceiveWriteWithImmediate) {
                self.qp.post_recv(completion.wr_id, &[self.ball.sge(0..BALL)])?;
                return Ok(completion.immediate);
            }
        }
    }
}
