//go:build unix

package transport

import (
	"os"
	"strconv"
	"sync"
	"syscall"
)

// Reaper kills the process groups of servers when the host ends without closing them, for example by SIGKILL.
// The children of a server would otherwise survive. Reaper runs a small shell in its own session. The shell
// knows the live groups and waits for the end of a pipe that only the host holds. It is started with the
// first server; without a shell, Reaper does nothing. Processes that left their group, such as daemons,
// survive. Reaper also owns the one thread that starts processes, see launcher. The zero value is ready to
// use and a nil Reaper does nothing. It is safe for concurrent use. The owner closes it after the servers.
type Reaper struct {
	launcher launcher
	mu       sync.Mutex
	pipe     *os.File // stdin of the shell; nil if there is no shell
	pid      int
	done     bool // the shell was started once or is no longer needed
}

// reaperScript keeps the list of groups and kills the remaining ones when the pipe ends. It only uses
// built-ins of a POSIX shell.
const reaperScript = `trap '' HUP INT TERM QUIT
all=
while read -r what group; do
	case $what in
	+) all="$all $group" ;;
	-)
		left=
		for g in $all; do [ "$g" = "$group" ] || left="$left $g"; done
		all=$left
		;;
	esac
done
for g in $all; do kill -s KILL -- "-$g"; done`

// prepare starts the shell unless it was started before. It is called before a process starts, so that every
// process is covered.
func (r *Reaper) prepare() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done {
		r.start()
	}
}

// launch runs start on the thread of the launcher. It reports false, without running start, if the caller has
// to use its own thread.
func (r *Reaper) launch(start func() error) (bool, error) {
	if r == nil {
		return false, nil
	}
	return r.launcher.launch(start)
}

// add registers a process group, and remove deletes it.
func (r *Reaper) add(group int)    { r.say("+", group) }
func (r *Reaper) remove(group int) { r.say("-", group) }

// say writes a line to the shell. If the shell has ended, it is not started again.
func (r *Reaper) say(what string, group int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pipe == nil {
		return
	}
	if _, err := r.pipe.WriteString(what + " " + strconv.Itoa(group) + "\n"); err != nil {
		r.stop()
	}
}

// start starts the shell, without a goroutine that waits for it. The caller holds the lock.
func (r *Reaper) start() {
	r.done = true // start only once
	in, out, err := os.Pipe()
	if err != nil {
		return
	}
	defer in.Close()
	none := ^uintptr(0)
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", reaperScript}, &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: []uintptr{in.Fd(), none, none}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		_ = out.Close()
		return
	}
	r.pipe, r.pid = out, pid
}

// Close ends the shell and waits for it. The registered groups are not killed.
func (r *Reaper) Close() {
	if r == nil {
		return
	}
	r.launcher.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = true
	r.stop()
}

// stop kills the shell before closing its pipe, so that it kills no group. The caller holds the lock.
func (r *Reaper) stop() {
	if r.pipe == nil {
		return
	}
	_ = syscall.Kill(r.pid, syscall.SIGKILL) // it may have ended
	var status syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(r.pid, &status, 0, nil); err != syscall.EINTR {
			break
		}
	}
	_ = r.pipe.Close()
	r.pipe = nil
}
