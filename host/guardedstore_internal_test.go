package host

import (
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// TestGuardedStore calls each method of a store in which every method panics.
func TestGuardedStore(t *testing.T) {
	g := reflect.ValueOf(guarded(broken{}, slog.New(slog.DiscardHandler)))
	for i := range g.NumMethod() {
		name, m := g.Type().Method(i).Name, g.Method(i)
		t.Run("RP-16_"+name, func(t *testing.T) {
			var in []reflect.Value
			for k := range m.Type().NumIn() {
				in = append(in, reflect.Zero(m.Type().In(k)))
			}
			if name == "HeldOf" { // without a run, it asks nothing
				in[0] = reflect.ValueOf([]string{"r"})
			}
			call := m.Call
			if m.Type().IsVariadic() {
				call = m.CallSlice
			}
			out := call(in)
			last := out[len(out)-1]
			if last.Type() != reflect.TypeFor[error]() {
				return // the method returns no error, and it did not panic
			}
			if name == "Attempt" { // this store does not record attempts
				return
			}
			err, _ := last.Interface().(error)
			if tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), "panicked in "+name+": it is unknown") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// broken is a store whose methods all panic, because the embedded interface is nil.
type broken struct{ store.Store }
