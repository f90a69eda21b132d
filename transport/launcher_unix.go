//go:build unix

package transport

import (
	"runtime"
	"sync"
	"time"
)

// launchWait is how long a start may hold up the next one; a file system that does
// not answer holds up the start of what is on it.
const launchWait = time.Second

// launcher starts processes on one thread, which it keeps until it is closed: Linux
// tells a process of the end of the thread that started it, and that must be ours
// alone. A thread for each process would cost more than all else of an idle server.
// The zero value is ready.
type launcher struct {
	mu     sync.Mutex
	work   chan launch // nil: there is no thread
	closed chan struct{}
	wg     sync.WaitGroup
	done   bool
}

type launch struct {
	start func() error
	err   chan error
}

// launch reports false where the thread is busy, or there is none any more.
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

// run is bound to its thread, which goes back to the others at the end and lives on,
// so that a process that was not closed lives on too.
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

// close waits for the start under way.
func (l *launcher) close() {
	l.mu.Lock()
	if !l.done && l.work != nil {
		close(l.closed)
	}
	l.done = true
	l.mu.Unlock()
	l.wg.Wait()
}
