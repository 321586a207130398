//! A seccomp filter that refuses `membarrier` and nothing else, installed while the process runs.

use std::io;

/// Makes every `membarrier` of every thread of this process fail with an error number, from now on.
pub(crate) fn refuse_membarrier(errno: i32) -> io::Result<()> {
    let mut program = [
        // The number of the system call is the first word of what the filter looks at.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_membarrier as u32, 1),
        instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | errno as u32, 0),
        instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the call takes numbers only.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `filter` and the program it points to live until the call returns, and the kernel copies them.
    let set = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const filter,
        )
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// One instruction; a comparison that fails skips so many.
fn instruction(code: u32, operand: u32, skip: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: skip, k: operand }
}
