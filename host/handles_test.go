package host_test

import (
	"reflect"
	"testing"

	"github.com/tenonhq/tenon/host"
)

// The limits for the size of an API object: as many methods as a reader can remember.
const (
	maxHostMethods   = 15
	maxHandleMethods = 7
)

// TestHandlesAreSmall finds every API object that can be reached from a Host, and counts its methods.
func TestHandlesAreSmall(t *testing.T) {
	h := reflect.TypeFor[*host.Host]()
	if n := h.NumMethod(); n > maxHostMethods {
		t.Errorf("*host.Host has %d exported methods, want at most %d: give the new one to a handle", n, maxHostMethods)
	}
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(of reflect.Type) {
		for i := range of.NumMethod() {
			m := of.Method(i).Type
			for j := range m.NumOut() {
				out := m.Out(j)
				if out.Kind() != reflect.Interface || out.PkgPath() != h.Elem().PkgPath() || seen[out] {
					continue
				}
				seen[out] = true
				if n := out.NumMethod(); n > maxHandleMethods {
					t.Errorf("%s has %d methods, want at most %d: divide it", out, n, maxHandleMethods)
				}
				visit(out)
			}
		}
	}
	visit(h)
	const handles = 17
	if len(seen) < handles {
		t.Errorf("only %d handles are reached: %v", len(seen), seen)
	}
}
