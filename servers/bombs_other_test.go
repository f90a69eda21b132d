//go:build !linux

package servers

// playVictim exists on Linux only; see TestA2 there.
func playVictim() {}
