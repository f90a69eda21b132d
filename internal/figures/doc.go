// Command figures measures what docs/figures.md claims. It is run from the
// repository as
//
//	go run ./internal/figures [-id P1] [-rounds 7]     (or: make figures ID=P1)
//
// and rewrites docs/figures.json and docs/figures.md: the rows of what it
// measured are replaced, all others stay.
//
// A machine that others use as well has no speed that could be written down, so
// a figure is a ratio: what ours takes over what a floor takes, both measured in
// turns within one round; the value is the median over the rounds (five at
// least). Package floor holds the floors, package bench the load, package
// durable the engine's own figures; internal/rivals, a module of its own, holds
// the programs of others, which are measured in the same rounds where they can be
// built. The child processes of all this are this program itself, started again
// with the hidden first argument "child".
//
// One file measures one goal: p1.go, p2.go and so on. The bounds stand in
// goals.go and nowhere else. What cannot be measured is said on stderr and keeps
// its old row, or none: no figure is ever made up.
package main
