//go:build !linux

package servers

// playVictim is of Linux only: see TestA2 there.
func playVictim() {}
