//go:build unix

package transport

import (
	"os"
	"strconv"
	"sync"
	"syscall"
)

// Reaper ends the groups of server processes when we end without closing them, as
// by SIGKILL: what a server has started is told of our death by nobody else. It is
// a small shell in a session of its own that knows the groups which are alive and
// waits for the end of a pipe that only we hold. It is started with the first
// server. Where there is no shell it does nothing. What leaves its group, as
// daemons do, is not reached. It also has the one thread that starts processes, which
// costs each server less than a thread of its own. The zero value is ready, nil never does anything;
// it is safe for concurrent use. Who makes one closes it after the servers.
type Reaper struct {
	launcher launcher
	mu       sync.Mutex
	pipe     *os.File // its stdin; nil: not started, or of no use
	pid      int
	done     bool // nothing is started any more
}

// reaperScript keeps the list of groups and kills those that are left when the
// pipe ends. All of it is built into any POSIX shell.
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

// prepare starts the shell unless it is there. It comes before the process is
// started, so that there is no moment at which nobody would end it.
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

// launch starts a process on the thread that it keeps. It reports false, and has not
// started it, where the caller is to use a thread of its own.
func (r *Reaper) launch(start func() error) (bool, error) {
	if r == nil {
		return false, nil
	}
	return r.launcher.launch(start)
}

// add tells it of a group, and remove that it has ended.
func (r *Reaper) add(group int)    { r.say("+", group) }
func (r *Reaper) remove(group int) { r.say("-", group) }

// say writes a line. A shell that somebody has killed is not started again.
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

// start starts the shell, without a goroutine that waits for it; the caller holds
// the lock.
func (r *Reaper) start() {
	r.done = true // once
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

// Close ends the shell and waits for it. It kills nobody else.
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

// stop ends the shell before it can see the end of the pipe; the caller holds the
// lock.
func (r *Reaper) stop() {
	if r.pipe == nil {
		return
	}
	_ = syscall.Kill(r.pid, syscall.SIGKILL) // it may be gone
	var status syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(r.pid, &status, 0, nil); err != syscall.EINTR {
			break
		}
	}
	_ = r.pipe.Close()
	r.pipe = nil
}
