// Package pty opens pseudo-terminals, so that tests of the documentation and the program that draws its pictures
// see what a person sees at a terminal: aligned tables, questions, colours.
//
// A pseudo-terminal has two ends. A program gets the terminal as its standard streams. The caller reads from the
// other end what the program prints, and writes to it what a person would type. Screen turns the printed bytes into
// lines, as far as tenon's output needs it: carriage returns, erased lines, a cursor that moves up.
//
// Session runs commands of a shell at such a terminal, one after the other, and types answers to their questions.
// TestGuide in internal/cli runs the pages of docs/guide with it, and internal/pictures draws the terminal of
// README.md.
//
// The package is not part of the product. Only Linux is supported; elsewhere Open returns errors.ErrUnsupported and
// the caller skips its work.
package pty
