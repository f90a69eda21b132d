package transport

import "syscall"

// deathSignal lets the kernel kill the process when the thread that started it
// ends. That thread is held for the process's whole life (see launcher), so this
// happens when we die without closing.
func deathSignal(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
