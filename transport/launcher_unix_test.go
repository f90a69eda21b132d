//go:build unix

package transport

import (
	"errors"
	"testing"
)

func TestLauncher(t *testing.T) {
	var l launcher
	want := errors.New("no such file")
	if ok, err := l.launch(func() error { return want }); !ok || err != want {
		t.Fatal(ok, err)
	}
	// A start that hangs must not delay another one: the next caller uses its own thread.
	hang, begun := make(chan struct{}), make(chan struct{})
	go func() { _, _ = l.launch(func() error { close(begun); <-hang; return nil }) }()
	<-begun
	if ok, err := l.launch(func() error { t.Error("started twice"); return nil }); ok || err != nil {
		t.Fatal(ok, err)
	}
	close(hang)
	l.close()
	l.close()
	if ok, _ := l.launch(func() error { return nil }); ok {
		t.Fatal("started after close")
	}
}
