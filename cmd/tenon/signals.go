package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/tenonhq/tenon"
)

// signalled is the cause of a context that a signal ended. Ctrl-C is a person who
// does not want the answer any more; the other two end the process, and the run
// can go on in another one.
type signalled struct{ sig syscall.Signal }

func (s signalled) Error() string {
	switch s.sig {
	case syscall.SIGINT:
		return "interrupted"
	case syscall.SIGHUP:
		return "ended by SIGHUP"
	}
	return "ended by SIGTERM"
}

// status is what a shell reports of a process that the signal ended.
func (s signalled) status() int { return exitSignalled + int(s.sig) }

// ends reports whether the signal ends the process and leaves its run as it is.
func (s signalled) ends() bool { return s.sig != syscall.SIGINT }

// endedBy returns the signal, other than Ctrl-C, that ended ctx.
func endedBy(ctx context.Context) (signalled, bool) {
	var s signalled
	ok := errors.As(context.Cause(ctx), &s) && s.ends()
	return s, ok
}

// stopped is the error of work that a signal ended. Note says how to go on.
func (s signalled) stopped(note string) error {
	return &tenon.Error{Code: tenon.CodeCancelled, Message: s.Error() + note, Err: s}
}

// interrupted replaces the error of a context that ended by what ended it.
func interrupted(ctx context.Context, err error) error {
	s, ok := endedBy(ctx)
	if ok && errors.As(err, &signalled{}) {
		return err // it says more
	}
	if !ok {
		s.sig = syscall.SIGINT
	}
	return s.stopped("")
}

// signals returns a context that the first signal ends, with a signalled as its
// cause. The second one ends the process where it stands.
func signals(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	list := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		list = append(list, syscall.SIGHUP)
	}
	got, done, over := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(got, list...)
	go func() {
		defer close(over)
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case sig := <-got:
				s := signalled{syscall.SIGTERM}
				if known, ok := sig.(syscall.Signal); ok {
					s.sig = known
				}
				if n > 0 {
					os.Exit(s.status())
				}
				cancel(s)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(got)
		close(done)
		<-over
		cancel(nil)
	}
}

var _ error = signalled{}
