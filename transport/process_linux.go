package transport

import "syscall"

// deathSignal makes the kernel kill the process when the thread that started it ends. The thread lives as
// long as the process (see launcher), so this happens only when the host dies without closing the process.
func deathSignal(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
