//go:build unix

package transport

import (
	"runtime"
	"sync"
	"time"
)

// launchWait limits how long the start of one process may delay the next start. If a file system does not respond, it
// then delays only the programs on that file system.
const launchWait = time.Second

// launcher starts processes on one thread, which it keeps until it is closed. Linux sends a process its death signal
// when the thread that started it ends, so that thread must live as long as the host. A separate thread for each
// process would cost more than the rest of an idle server. The zero value is ready to use.
type launcher struct {
	mu     sync.Mutex
	work   chan launch // nil before the thread is started
	closed chan struct{}
	wg     sync.WaitGroup
	done   bool
}

type launch struct {
	start func() error
	err   chan error
}

// launch runs start on the thread. It reports false, without running start, if the thread is busy or closed.
func (l *launcher) launch(start func() error) (bool, error) {
	l.mu.Lock()
	if l.done {
		l.mu.Unlock()
		return false, nil
	}
	if l.work == nil {
		l.work, l.closed = make(chan launch), make(chan struct{})
		l.wg.Go(l.run)
	}
	l.mu.Unlock()
	one := launch{start, make(chan error, 1)}
	late := time.NewTimer(launchWait)
	defer late.Stop()
	select {
	case l.work <- one:
		return true, <-one.err
	case <-late.C:
	case <-l.closed:
	}
	return false, nil
}

// run locks its thread, and unlocks it at the end. After that the thread continues to live, and so does each process
// that was not closed.
func (l *launcher) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		select {
		case one := <-l.work:
			one.err <- one.start()
		case <-l.closed:
			return
		}
	}
}

// close ends the thread. It waits for a start in progress.
func (l *launcher) close() {
	l.mu.Lock()
	if !l.done && l.work != nil {
		close(l.closed)
	}
	l.done = true
	l.mu.Unlock()
	l.wg.Wait()
}
