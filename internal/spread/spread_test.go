package spread_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/tenonhq/tenon/internal/spread"
)

// TestMap checks that every element is in one part, that the parts are in order, and that none is too short.
func TestMap(t *testing.T) {
	for _, n := range []int{0, 1, 2, 9, 10, 11, 99, 1000} {
		for _, least := range []int{0, 1, 10, 2000} {
			t.Run(fmt.Sprintf("%d of at least %d", n, least), func(t *testing.T) {
				list := make([]int, n)
				for i := range list {
					list[i] = i
				}
				parts := spread.Map(list, least, func(from int, part []int) []int {
					if len(part) == 0 || part[0] != from || len(part) < min(least, n) {
						t.Errorf("part from %d: %d elements", from, len(part))
					}
					return part
				})
				if len(parts) > runtime.GOMAXPROCS(0) || !slices.Equal(slices.Concat(parts...), list) {
					t.Errorf("%d parts: %v", len(parts), parts)
				}
			})
		}
	}
}
