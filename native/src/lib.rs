//! A small C ABI over the `lance` crate: facts about datasets, and commits of
//! small tables. No policy lives here. README.md is the contract.
//!
//! This file is the shell: it turns pointers into values, catches panics and
//! hands memory over. Everything behind it is ordinary Rust returning `Result`.

mod accept;
mod base;
mod batch;
mod call;
mod cancel;
mod classify;
mod clock;
mod commits;
mod compact;
mod engine;
mod error;
mod fingerprint;
mod fresh;
mod generation;
mod hanging;
mod local;
mod maintain;
mod maker;
mod merge;
mod objects;
mod observe;
mod preview;
mod probe;
mod probe_local;
mod remote;
mod requests;
mod seal;
mod shard;
mod sweep;
mod tables;
mod tail;
#[cfg(test)]
mod tests;
mod unbroken;
mod verify;
mod versions;
mod wal;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

use bytes::Bytes;

use crate::call::{Call, Reply};
use crate::error::{Class, Fault};

/// Raised whenever a symbol, a struct or the meaning of an operation changes.
const ABI_VERSION: u32 = 2;

/// Status of a call whose reply holds an error.
const FAILED: i32 = 1;
/// Status of a call whose pointers are unusable: there is no place for an error.
const UNUSABLE: i32 = 2;

/// One call. Pointers may be null where the length is 0.
#[repr(C)]
pub struct LfRequest {
    pub engine: u64,
    pub cancel: u64,
    pub op: *const u8,
    pub op_len: usize,
    pub json: *const u8,
    pub json_len: usize,
    pub body: *const u8,
    pub body_len: usize,
}

/// What a call answers. Owned by the library until `lf_reply_free`.
#[repr(C)]
pub struct LfReply {
    pub json: *mut u8,
    pub json_len: usize,
    pub body: *mut u8,
    pub body_len: usize,
}

/// Version of this ABI; a caller refuses a library that says another one.
#[unsafe(no_mangle)]
pub extern "C" fn lf_abi_version() -> u32 {
    ABI_VERSION
}

/// Runs one operation and blocks until it ends. 0 = ok, 1 = `reply.json` is an
/// error, 2 = `request` or `reply` is null.
///
/// # Safety
/// `request` points to a valid `LfRequest` whose buffers live during the call;
/// `reply` points to memory for an `LfReply`, which is overwritten.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lf_call(request: *const LfRequest, reply: *mut LfReply) -> i32 {
    if request.is_null() || reply.is_null() {
        return UNUSABLE;
    }
    // SAFETY: not null, and valid by this function's contract. The buffers are
    // copied here, so nothing of the caller's is referenced after the call, not
    // even by a task that a cancelled call left behind.
    let call = unsafe { copy_request(&*request) };
    let outcome = catch_unwind(AssertUnwindSafe(|| call::run(call)))
        .unwrap_or_else(|panic| Err(Fault::from_panic(panic.as_ref())));
    let (status, answer) = match outcome {
        Ok(answer) => (0, answer),
        Err(fault) => (FAILED, fault.into_reply()),
    };
    // SAFETY: not null, and writable by this function's contract.
    unsafe { reply.write(hand_over(answer)) };
    status
}

/// Frees what `lf_call` wrote. Calling it again does nothing.
///
/// # Safety
/// `reply` is null or points to an `LfReply` that `lf_call` filled and nobody
/// changed since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lf_reply_free(reply: *mut LfReply) {
    if reply.is_null() {
        return;
    }
    // SAFETY: by contract this is a reply of ours; `take` made from the same
    // boxed slices gives them back exactly once, then the pointers are null.
    unsafe {
        let reply = &mut *reply;
        take(&mut reply.json, &mut reply.json_len);
        take(&mut reply.body, &mut reply.body_len);
    }
}

/// Makes a token for `lf_call`. Never 0.
#[unsafe(no_mangle)]
pub extern "C" fn lf_cancel_new() -> u64 {
    catch_unwind(cancel::create).unwrap_or(0)
}

/// Ends the calls that run under the token. Unknown tokens are ignored.
#[unsafe(no_mangle)]
pub extern "C" fn lf_cancel_fire(token: u64) {
    // A panic must not cross the border; there is nobody to tell.
    let _ = catch_unwind(|| cancel::fire(token));
}

/// Forgets the token. A call under way keeps its own handle to it.
#[unsafe(no_mangle)]
pub extern "C" fn lf_cancel_free(token: u64) {
    // As above.
    let _ = catch_unwind(|| cancel::free(token));
}

/// # Safety
/// The pointers in `request` are valid for their lengths.
unsafe fn copy_request(request: &LfRequest) -> Call {
    // SAFETY: by this function's contract.
    unsafe {
        Call {
            engine: request.engine,
            cancel: request.cancel,
            op: String::from_utf8_lossy(view(request.op, request.op_len)).into_owned(),
            json: view(request.json, request.json_len).to_vec(),
            body: Bytes::copy_from_slice(view(request.body, request.body_len)),
        }
    }
}

/// # Safety
/// `pointer` is valid for `length` bytes, or `length` is 0.
unsafe fn view<'a>(pointer: *const u8, length: usize) -> &'a [u8] {
    if pointer.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: by this function's contract.
    unsafe { slice::from_raw_parts(pointer, length) }
}

fn hand_over(answer: Reply) -> LfReply {
    // A `Value` always has a text; the fallback only keeps this free of panics.
    let json = serde_json::to_vec(&answer.json).unwrap_or_else(|_| b"null".to_vec());
    let (json, json_len) = give(json);
    let (body, body_len) = give(answer.body);
    LfReply {
        json,
        json_len,
        body,
        body_len,
    }
}

fn give(bytes: Vec<u8>) -> (*mut u8, usize) {
    if bytes.is_empty() {
        return (std::ptr::null_mut(), 0);
    }
    let length = bytes.len();
    (Box::into_raw(bytes.into_boxed_slice()).cast(), length)
}

/// # Safety
/// `pointer` and `length` come from `give`, unchanged, or `pointer` is null.
unsafe fn take(pointer: &mut *mut u8, length: &mut usize) {
    let (data, size) = (
        std::mem::replace(pointer, std::ptr::null_mut()),
        std::mem::take(length),
    );
    if !data.is_null() {
        // SAFETY: made by `Box::into_raw` of a slice of this length in `give`.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(data, size)) });
    }
}

impl Fault {
    fn into_reply(self) -> Reply {
        Reply {
            json: self.to_json(),
            body: Vec::new(),
        }
    }

    /// What a caught panic says.
    pub(crate) fn from_panic(panic: &(dyn std::any::Any + Send)) -> Self {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no text".to_owned());
        Self::new(Class::Panic, format!("panic: {text}"))
    }
}
