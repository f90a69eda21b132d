package main

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// didYouMean returns "; did you mean 'x'?" where one of the names is close to
// what was given, else the names themselves where they are few, else "".
func didYouMean(given string, names []string) string {
	best := tenon.Nearest(given, names)
	for _, n := range names {
		if given != "" && best == "" && strings.HasPrefix(strings.ToLower(n), strings.ToLower(given)) {
			best = n
		}
	}
	switch {
	case best != "":
		return "; did you mean '" + best + "'?"
	case len(names) > 0 && len(names) <= 20:
		names = slices.Sorted(slices.Values(names))
		return "; there are: " + strings.Join(names, ", ")
	}
	return ""
}
