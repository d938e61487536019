#![expect(
    unsafe_code,
    reason = "a filter has to be installed between fork and exec"
)]
//! A filter that refuses namespaces.

use std::{io, os::unix::process::CommandExt, process::Command};

/// System calls that fail with `EPERM`. `pidfd_getfd` is among them, as in most containers.
const REFUSED: [i64; 9] = [
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_pidfd_getfd,
];

/// The flags of clone(2) that make namespaces.
const NAMESPACES: u32 = 0x7e02_0000;

/// Has a command run where namespaces are refused.
pub(crate) fn refuse_namespaces(command: &mut Command) {
    let mut program = program();
    // SAFETY: the closure makes system calls only, with what lives in it.
    unsafe { command.pre_exec(move || install(&mut program)) };
}

fn install(program: &mut [libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the program is as long as it says and lives until the calls are over.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                0,
                &raw const program,
            ) == 0
    };
    if installed {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn program() -> Vec<libc::sock_filter> {
    let step = |code: u32, k: u32, jt, jf| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let load = |offset| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0);
    let is = |call: i64, miss| step(libc::BPF_JMP | libc::BPF_JEQ, call as u32, 0, miss);
    let end = |value| step(libc::BPF_RET, value, 0, 0);
    let error = |number: i32| end(libc::SECCOMP_RET_ERRNO | number as u32);
    let mut program = vec![load(0)];
    for call in REFUSED {
        program.extend([is(call, 1), error(libc::EPERM)]);
    }
    program.extend([
        is(libc::SYS_clone3, 1),
        error(libc::ENOSYS),
        is(libc::SYS_clone, 3),
        // Its first argument.
        load(16),
        step(libc::BPF_JMP | libc::BPF_JSET, NAMESPACES, 0, 1),
        error(libc::EPERM),
        end(libc::SECCOMP_RET_ALLOW),
    ]);
    program
}
