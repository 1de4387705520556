package scenario

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/pkg/errors"
)

// Parse reads a scenario file: strictly, so that a key that means nothing, or is
// there twice, is an error that names it and those that there are. The scenario has
// its defaults and is checked.
func Parse(file []byte) (*Scenario, error) {
	file = bytes.TrimPrefix(file, []byte("\ufeff")) // some editors begin a text with a byte order mark
	if len(bytes.TrimSpace(file)) == 0 {
		return nil, errors.New("scenario: the file is empty: begin with one that is there")
	}
	if err := checkKeys(file); err != nil {
		return nil, errors.Wrap(err, "scenario")
	}
	s := new(Scenario)
	if err := json.Unmarshal(file, s); err != nil {
		return nil, errors.Wrap(explain(err, ""), "scenario")
	}
	s.fill()
	if err := s.check(); err != nil {
		return nil, errors.Wrap(err, "scenario")
	}
	return s, nil
}

// explain says what a value of the wrong type should be, in the object at path.
func explain(err error, path string) error {
	var bad *json.UnmarshalTypeError
	if errors.As(err, &bad) {
		at := strings.Trim(path+"."+bad.Field, ".")
		return errors.Errorf("%s is %s, want %s", cmp.Or(at, "the file"), found(bad.Value), wanted(bad.Type))
	}
	return err
}

// found is a value that encoding/json names, as "array" or "number 1.5".
func found(value string) string {
	if value == "array" {
		return "a list"
	}
	if value == "object" {
		return "an object"
	}
	return "a " + value
}

func wanted(t reflect.Type) string {
	if t == reflect.TypeFor[Variant]() {
		return "a name or an object"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Uint64:
		return "a whole number, 0 or more"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// checkKeys walks the file along the types that it is decoded into.
func checkKeys(file []byte) error {
	d := json.NewDecoder(bytes.NewReader(file))
	if err := walk(d, reflect.TypeFor[Scenario](), ""); err != nil {
		return errors.Wrapf(err, "line %d", 1+bytes.Count(file[:d.InputOffset()], []byte("\n")))
	}
	if d.More() {
		return errors.New("there is more after the object: a file has one")
	}
	return nil
}

// walk reads one value of a type; nil is any.
func walk(d *json.Decoder, t reflect.Type, path string) error {
	tok, err := d.Token()
	if err != nil {
		return errors.Wrap(err, "not JSON")
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[Span]() {
		return errors.Wrap(new(Span).set(tok), path)
	}
	switch tok {
	case json.Delim('['):
		var elem reflect.Type
		if t != nil && t.Kind() == reflect.Slice {
			elem = t.Elem()
		}
		for d.More() {
			if err := walk(d, elem, path); err != nil {
				return err
			}
		}
		_, err = d.Token()
	case json.Delim('{'):
		seen := map[string]bool{}
		fields, names := fieldsOf(t)
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return errors.Wrap(err, "not JSON")
			}
			name, _ := key.(string)
			at := strings.TrimPrefix(path+"."+name, ".")
			if seen[name] {
				return errors.Errorf("%s is there twice: leave one of them out", at)
			}
			seen[name] = true
			field, ok := fields[name]
			if fields != nil && !ok {
				return errors.Errorf("%s is not a key: there are %s", at, strings.Join(names, ", "))
			}
			if err := walk(d, field, at); err != nil {
				return err
			}
		}
		_, err = d.Token()
	}
	return errors.Wrap(err, "not JSON")
}

// fieldsOf gives the keys of a struct with their types; nil for what is none.
func fieldsOf(t reflect.Type) (fields map[string]reflect.Type, names []string) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, nil
	}
	fields = map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = f.Type
			names = append(names, name)
		}
	}
	return fields, names
}
