//! Processes of a program's own: it sees and signals nothing but what it has started, and whatever that is ends with it.
//!
//! ```text
//! squad ─ starts ─→ squad within … (outer) ─→ the same, with number 1 inside (first) ─→ PROGRAM
//! ```
//!
//! A process cannot move to where it has another number, so those that it starts do. The first one there takes note of
//! the dead and hears no signal that it does not ask for, so it is no place for the program. The outer one is what squad
//! knows: it hands signals on, and ends as the program did. If it is killed, so is all that is inside.

use std::ffi::c_int;
use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mount::{MountFlags, mount};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group,
    set_parent_process_death_signal, setpgid, setrlimit, wait, waitpid,
};

/// Signals that the program gets from whoever knows the outer process only.
const HANDED_ON: [c_int; 8] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGCONT,
];

/// Where the first process says how the program ended: its status, and whether it left anything running.
pub(super) struct Ending {
    tell: PipeWriter,
    /// The signals that were blocked before, as the program will have them.
    blocked: libc::sigset_t,
}

/// In the outer process, whose children are inside: starts the first one, and returns there only. The outer process ends
/// with the program.
///
/// # Errors
///
/// There can be no more processes.
pub(super) fn begin() -> io::Result<Ending> {
    let (told, tell) = io::pipe()?;
    let outer = getpid();
    // It is handed on from the first moment.
    let blocked = block(&HANDED_ON)?;
    match fork()? {
        Some(first) => {
            drop(tell);
            // The first one does so too, and one of both is early enough.
            let _ = setpgid(Some(first), Some(first));
            outer_process(first, told)
        }
        None => {
            drop(told);
            let _ = setpgid(None, None);
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The outer one may have died before.
            let mut ending = [PollFd::new(&tell, PollFlags::empty())];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            if poll(&mut ending, Some(&now))? > 0 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            // Programs tell their locks by numbers, which are not to be the same for each that is started.
            let _ = fs::write("/proc/sys/kernel/ns_last_pid", outer.as_raw_nonzero().to_string());
            Ok(Ending { tell, blocked })
        }
    }
}

/// In the first process: has `/proc` show what is inside.
///
/// # Errors
///
/// It is covered in part, as in a container.
pub(super) fn show() -> Result<(), String> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).map_err(|error| format!("/proc: {error}"))
}

/// In the first process, when all is arranged: starts the process that becomes the program, and returns there only.
///
/// # Errors
///
/// There can be no more processes.
pub(super) fn separate(ending: Ending) -> io::Result<()> {
    match fork()? {
        Some(program) => first_process(program, ending.tell),
        None => set_mask(libc::SIG_SETMASK, &ending.blocked).map(drop),
    }
}

fn outer_process(first: Pid, mut told: PipeReader) -> ! {
    close_all_but(told.as_raw_fd());
    hand_on_until(&told, first);
    let mut message = [0; 5];
    let heard = told.read_exact(&mut message);
    let [one, two, three, four, left] = message;
    let mut status = c_int::from_ne_bytes([one, two, three, four]);
    if heard.is_err() || left == 0 {
        let ended = waitpid(Some(first), WaitOptions::empty());
        if let (true, Ok(Some((_, ended)))) = (heard.is_err(), ended) {
            status = ended.as_raw();
        }
    }
    end_as(status)
}

/// Ends like a process with this status.
fn end_as(status: c_int) -> ! {
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        // The program has left one, if any.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        raise(signal);
        exit(128 + signal)
    }
    exit(libc::WEXITSTATUS(status))
}

fn first_process(program: Pid, mut tell: PipeWriter) -> ! {
    close_all_but(tell.as_raw_fd());
    let raw = |status: WaitStatus| status.as_raw();
    let status = loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == program => break raw(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => exit(1),
        }
    };
    let is_left = loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    if is_left {
        // squad ends what a program leaves, and says so. It finds this process by its variables, like the rest.
        let _ = set_parent_process_death_signal(None);
    }
    let mut message = status.to_ne_bytes().to_vec();
    message.push(u8::from(is_left));
    // Nobody may be there to hear it.
    let _ = tell.write_all(&message);
    drop(tell);
    if is_left {
        while let Ok(_) | Err(rustix::io::Errno::INTR) = wait(WaitOptions::empty()) {}
    }
    exit(0)
}

/// Hands signals on until the first process says something, or is gone. A process whose children are inside can have no
/// second thread.
fn hand_on_until(told: &PipeReader, first: Pid) {
    let Ok(mut signals) = listener(&HANDED_ON).map(fs::File::from) else { return };
    loop {
        let mut ready = [PollFd::new(told, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
        let polled = poll(&mut ready, None);
        let [told, heard] = ready.map(|ready| !ready.revents().is_empty());
        if told || polled.is_err_and(|error| error != rustix::io::Errno::INTR) {
            return;
        }
        let mut report = [0; size_of::<libc::signalfd_siginfo>()];
        if heard && signals.read_exact(&mut report).is_ok() {
            let [one, two, three, four, ..] = report;
            let signal = c_int::from_ne_bytes([one, two, three, four]);
            // It may have ended.
            let _ = Signal::from_named_raw(signal).map(|signal| kill_process_group(first, signal));
        }
    }
}

#[expect(unsafe_code, reason = "rustix has no fork for programs that use the standard library")]
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: this process has one thread, so nothing is held by another one that the child would lack.
    match unsafe { libc::fork() } {
        ..0 => Err(io::Error::last_os_error()),
        child => Ok(Pid::from_raw(child)),
    }
}

/// Closes what the program has: nobody but the program is to hold its input and output, or a descriptor of squad's.
#[expect(unsafe_code, reason = "rustix has no close_range")]
fn close_all_but(kept: RawFd) {
    let Ok(kept) = libc::c_uint::try_from(kept) else { return };
    let ranges = [(0, kept.checked_sub(1)), (kept + 1, Some(libc::c_uint::MAX))];
    for (first, last) in ranges {
        if let Some(last) = last.filter(|last| first <= *last) {
            // SAFETY: takes numbers only; what owns the descriptors is not used again, as neither process returns.
            let _ = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    }
}

fn set_of(signals: &[c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    #[expect(unsafe_code, reason = "rustix has no sets of signals")]
    // SAFETY: the first call makes the set, and the others add to it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}

/// Returns what was blocked before. The dead are taken note of only where SIGCHLD is not ignored.
fn block(signals: &[c_int]) -> io::Result<libc::sigset_t> {
    set_default(libc::SIGCHLD);
    set_mask(libc::SIG_BLOCK, &set_of(signals))
}

/// Returns the mask before.
#[expect(unsafe_code, reason = "rustix has no masks of signals")]
fn set_mask(how: c_int, set: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = set_of(&[]);
    // SAFETY: both sets are there for the call.
    let result = unsafe { libc::pthread_sigmask(how, set, &raw mut before) };
    if result == 0 { Ok(before) } else { Err(io::Error::from_raw_os_error(result)) }
}

/// A file that tells of these signals, which are blocked.
#[expect(unsafe_code, reason = "rustix has no signalfd")]
fn listener(signals: &[c_int]) -> io::Result<OwnedFd> {
    let set = set_of(signals);
    // SAFETY: the set is there for the call, and what it returns belongs to nobody else.
    match unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC) } {
        ..0 => Err(io::Error::last_os_error()),
        made => Ok(unsafe { OwnedFd::from_raw_fd(made) }),
    }
}

fn raise(signal: c_int) {
    set_default(signal);
    let _ = set_mask(libc::SIG_UNBLOCK, &set_of(&[signal]));
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _ = kill_process(getpid(), signal);
    }
}

#[expect(unsafe_code, reason = "rustix has no dispositions of signals")]
fn set_default(signal: c_int) {
    // SAFETY: takes numbers only.
    let _ = unsafe { libc::signal(signal, libc::SIG_DFL) };
}

#[expect(unsafe_code, reason = "nothing of squad's is to run at the end of a process that is only beside a program")]
fn exit(code: c_int) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}
