package servers

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
)

// TestIdentity changes each key of an entry and checks whether the server's identity changes. It must, except for the
// keys in taken, which only the catalog and the rules use. Whoever adds a key has to decide.
func TestIdentity(t *testing.T) {
	taken := []string{"Replica", "Elsewhere", "Description", "Enabled", "Trusted", "IsRetrieval", "Defer", "Include", "Exclude", "Where", "Filters", "Naming",
		"Transform", "Schema", "ProviderOptions", "Policy", "CallerCredentials", "Principals"}
	plain := Config{Command: "x"}
	var set func(v reflect.Value)
	set = func(v reflect.Value) {
		switch v.Interface().(type) {
		case tenon.Secret:
			v.Set(reflect.ValueOf(tenon.NewSecret("a-value")))
			return
		case json.RawMessage:
			v.Set(reflect.ValueOf(json.RawMessage(`7`)))
			return
		case time.Duration:
			v.SetInt(int64(17 * time.Second))
			return
		}
		switch v.Kind() {
		case reflect.String:
			v.SetString("other")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int64:
			v.SetInt(7)
		case reflect.Float64:
			v.SetFloat(7)
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem())) // false, because true is the default
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			set(v.Index(0))
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
			e := reflect.New(v.Type().Elem()).Elem()
			set(e)
			v.SetMapIndex(reflect.ValueOf("k"), e)
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Field(i).CanSet() {
					set(v.Field(i))
				}
			}
		case reflect.Func: // of a Go program's transform
		default:
			t.Fatalf("cannot set a %s", v.Type())
		}
	}
	of := reflect.TypeFor[Config]()
	for i := range of.NumField() {
		c := plain
		set(reflect.ValueOf(&c).Elem().Field(i))
		if name := of.Field(i).Name; (c.Identity() == plain.Identity()) != slices.Contains(taken, name) {
			t.Errorf("%s counts: %v", name, c.Identity() != plain.Identity())
		}
	}
	for i := range reflect.TypeFor[Auth]().NumField() {
		c := plain
		set(reflect.ValueOf(&c.Auth).Elem().Field(i))
		if c.Identity() == plain.Identity() {
			t.Errorf("auth.%s does not count", reflect.TypeFor[Auth]().Field(i).Name)
		}
	}
	if plain.Identity() != plain.WithDefaults().Identity() {
		t.Error("what is written as it would be by default counts")
	}
}
