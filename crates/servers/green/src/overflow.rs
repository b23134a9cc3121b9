//! A stack overflow in a coroutine aborts the process with a message.
//!
//! The fault hits the guard below the stack. The handler runs on the thread's alternate signal
//! stack, because the coroutine's stack is full. It compares the address with the guards of
//! this thread's scheduler, prints one preformatted line, and aborts. Any other fault goes to the
//! previous handler, usually the one of std for thread stacks.

use crate::stack::Shape;
use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;
use std::rc::Rc;
use std::sync::OnceLock;

/// What the handler knows about the scheduler on its thread.
struct Watched {
    shape: Shape,
    message: String,
}

thread_local! {
    /// Null if no scheduler runs here. It is const-initialised and has no destructor, so reading it
    /// in a signal handler runs no code.
    static WATCHED: Cell<*const Watched> = const { Cell::new(ptr::null()) };
}

/// The signals that a bad address can raise, with their previous actions.
static PREVIOUS: OnceLock<[(libc::c_int, libc::sigaction); 2]> = OnceLock::new();

/// While it is alive, stack overflows in the coroutines of this thread's scheduler are reported.
pub(crate) struct Watch {
    watched: Rc<Watched>,
    /// The alternate stack, if the thread had none (std creates one for each thread it starts).
    alternate: Option<Box<[MaybeUninit<u8>]>>,
    /// It refers to this thread's signal stack, so it must not be sent to another thread.
    not_send: PhantomData<*const ()>,
}

impl Watch {
    pub(crate) fn start(shape: Shape) -> io::Result<Watch> {
        let message = format!(
            "green: stack overflow in a coroutine: it needed more than the {} bytes of its \
             stack; raise Config::stack_size\n",
            shape.stack_size
        );
        let alternate = ensure_alternate_stack()?;
        install_handlers()?;
        let watched = Rc::new(Watched { shape, message });
        WATCHED.set(Rc::as_ptr(&watched));
        Ok(Watch { watched, alternate, not_send: PhantomData })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        debug_assert!(ptr::eq(WATCHED.get(), Rc::as_ptr(&self.watched)));
        WATCHED.set(ptr::null());
        if self.alternate.is_some() {
            let off =
                libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
            // SAFETY: `alternate` holds this thread's alternate stack: it was set in `start`, and
            // `Watch` does not change threads. The stack is disabled before it is freed.
            unsafe { libc::sigaltstack(&raw const off, ptr::null_mut()) };
        }
    }
}

/// Gives this thread an alternate signal stack unless it has one.
fn ensure_alternate_stack() -> io::Result<Option<Box<[MaybeUninit<u8>]>>> {
    let mut now = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: 0, ss_size: 0 };
    // SAFETY: the call only queries, and `now` is valid for the result.
    if unsafe { libc::sigaltstack(ptr::null(), &raw mut now) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if now.ss_flags & libc::SS_DISABLE == 0 {
        return Ok(None);
    }
    // SAFETY: the call reads a value that the kernel passed to the process; 0 if it passed none.
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
    let mut memory = Box::new_uninit_slice(frame.max(libc::MINSIGSTKSZ) + 16 * 1024);
    let stack =
        libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
    // SAFETY: the memory is writable and stays allocated until `Watch` is dropped, which
    // disables the alternate stack first.
    if unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Some(memory))
}

/// Installs the handler once per process, and keeps the previous actions.
fn install_handlers() -> io::Result<()> {
    let mut failure = None;
    PREVIOUS.get_or_init(|| {
        [libc::SIGSEGV, libc::SIGBUS].map(|signal| match replace_action(signal) {
            Ok(previous) => (signal, previous),
            Err(error) => {
                failure = Some(error);
                // SAFETY: all zeros is a valid sigaction: SIG_DFL, no flags, empty mask.
                (signal, unsafe { std::mem::zeroed() })
            }
        })
    });
    failure.map_or(Ok(()), Err)
}

fn replace_action(signal: libc::c_int) -> io::Result<libc::sigaction> {
    // SAFETY: all zeros is a valid sigaction, and both pointers are valid for the call. The handler
    // only does what a signal handler may do: read plain memory, write, abort.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let mut previous: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        match libc::sigaction(signal, &raw const action, &raw mut previous) {
            0 => Ok(previous),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

extern "C" fn on_fault(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let watched = WATCHED.get();
    // SAFETY: the kernel passes a valid siginfo to a handler with SA_SIGINFO; both signals carry
    // an address. `WATCHED` is null or points into the `Watch` of this thread, which clears it
    // before it frees the memory.
    unsafe {
        if !watched.is_null() && (*watched).shape.is_guard((*info).si_addr().addr()) {
            let message = (*watched).message.as_bytes();
            libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len());
            libc::abort();
        }
    }
    forward(signal, info, context);
}

/// Applies the previous action to a signal.
fn forward(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let known = PREVIOUS.get().and_then(|all| all.iter().find(|(number, _)| *number == signal));
    let previous = known.map(|(_, action)| action);
    match previous.map(|action| (action.sa_sigaction, action.sa_flags)) {
        None | Some((libc::SIG_DFL | libc::SIG_IGN, _)) => {
            // SAFETY: this restores the default action, which is all zeros. The instruction then
            // faults again, and the kernel ends the process as it would have without this handler.
            unsafe {
                let default: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, &raw const default, ptr::null_mut());
            }
        }
        Some((handler, flags)) if flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: with SA_SIGINFO the stored address is a handler of this type.
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        Some((handler, _)) => {
            // SAFETY: without SA_SIGINFO the stored address is a handler of this type.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}
