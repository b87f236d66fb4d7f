package coffer

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// follow starts one child after another.
func (s *Settings) follow() {
	defer close(s.over)
	for {
		err := s.serve()
		s.lock.Lock()
		s.problem = asError(err)
		s.outdate()
		child := s.child
		s.child = nil
		s.lock.Unlock()
		if child != nil {
			child.end()
		}
		if !s.started {
			return
		}
		select {
		case <-s.closing:
			return
		case <-time.After(s.delay):
		}
		if s.delay *= 2; s.delay > 5*time.Second {
			s.delay = 5 * time.Second
		}
	}
}

// outdate notes that memory has not all that the store has; the lock is held.
func (s *Settings) outdate() {
	select {
	case <-s.current:
		s.current = make(chan struct{})
	default:
	}
}

func (s *Settings) serve() error {
	arguments := s.arguments
	if s.started { // In the place of a store that is away, another one would be empty.
		arguments = append(append([]string{}, arguments...), "--must-exist")
	}
	child, err := start(s.program, arguments, s.patience)
	if err != nil {
		return err
	}
	s.lock.Lock()
	s.child = child
	s.lock.Unlock()
	select {
	case <-s.closing:
		return failure(ErrUnavailable, "The settings are closed.")
	default:
	}
	if err := child.readHello(); err != nil {
		return err
	}
	members := map[string]any{"values": true}
	for name, value := range s.wanted {
		members[name] = value
	}
	s.lock.Lock()
	s.store = child.hello.Store
	s.lock.Unlock()
	s.position, s.watch, s.away = "", 0, false
	var failed error
	check := func(answer line) {
		if answer.Error != nil {
			failed = answer.Error
			_ = child.command.Process.Kill()
		}
	}
	note := func(answer line) {
		if check(answer); failed == nil {
			var watch struct{ Watch int }
			failed = json.Unmarshal(answer.OK, &watch)
			s.watch = watch.Watch
		}
	}
	if err := child.send("watch", members, note); err != nil {
		return err
	}
	s.ask = func() {
		store := s.present()
		fill := func(answer line) {
			if check(answer); failed == nil {
				if failed = s.fill(store, answer); failed != nil {
					_ = child.command.Process.Kill()
				}
			}
		}
		_ = child.send("snapshot", s.wanted, fill) // The next child is asked as well.
	}
	s.ask()
	err = child.follow(s.notice)
	if failed != nil {
		return failed
	}
	return err
}

// fill takes a snapshot.
func (s *Settings) fill(store string, answer line) error {
	if store != s.store { // It may be of the former store; the notice of this one has led to another.
		return nil
	}
	var snapshot struct {
		Position string
		Items    []Item
	}
	if err := json.Unmarshal(answer.OK, &snapshot); err != nil {
		return err
	}
	if commit(snapshot.Position) < commit(s.position) { // A newer notice came before it.
		go s.ask()
		return nil
	}
	items := map[place]Item{}
	for _, item := range snapshot.Items {
		if item.isKept() {
			item.store = store
			items[place{item.Collection, item.Key}] = item
		}
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	var changed []place
	for place, item := range items {
		former, ok := s.items[place]
		if former.store = store; !ok || !reflect.DeepEqual(former, item) {
			changed = append(changed, place)
		}
	}
	for place := range s.items {
		if _, ok := items[place]; !ok {
			changed = append(changed, place)
		}
	}
	s.items, s.position, s.delay = items, snapshot.Position, firstDelay
	if !s.away {
		s.problem = nil
	}
	if s.started {
		s.report(changed)
	}
	s.started = true
	select {
	case <-s.current:
	default:
		close(s.current)
	}
	return nil
}

func (s *Settings) notice(notice line) {
	s.lock.Lock()
	defer s.lock.Unlock()
	switch {
	case *notice.Watch != s.watch: // Of one that the program has asked for.
	case notice.Unavailable != nil:
		s.problem, s.away = notice.Unavailable, true
	case notice.Changes == nil:
		s.outdate()
		s.away = s.away && !notice.Available
		if notice.Replaced != "" {
			s.store = notice.Replaced
		}
		if notice.Position != "" {
			s.position = notice.Position // Of a replaced store, it may be lower.
		}
		go s.ask() // Not here: the child may wait for this goroutine to read before it reads itself.
	case commit(notice.Position) >= commit(s.position): // Else the snapshot has it, and what came after it.
		var changed []place
		for _, change := range notice.Changes {
			item := change.Item
			item.store = s.store
			place := place{item.Collection, item.Key}
			changed = append(changed, place)
			if item.isKept() {
				s.items[place] = item
			} else {
				delete(s.items, place)
			}
		}
		s.position = notice.Position
		s.report(changed)
	}
}

// report has observers called; the lock is held.
func (s *Settings) report(changed []place) {
	for _, next := range changed {
		s.changed[next] = true
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Settings) observe() {
	for isOver := false; !isOver; {
		select {
		case <-s.over:
			isOver = true
		case <-s.wake:
		}
		s.lock.Lock()
		changed := s.changed
		s.changed = map[place]bool{}
		var calls []func()
		for next := range changed {
			item := s.item(next)
			for entry := range s.observers {
				if entry.collection == next.collection && (entry.key == "" || entry.key == next.key) {
					call := entry.call
					calls = append(calls, func() { call(item) })
				}
			}
		}
		s.lock.Unlock()
		for _, call := range calls {
			call()
		}
	}
}

// commit is the number of a position's commit.
func commit(position string) int {
	text, _, _ := strings.Cut(position, "-")
	number, _ := strconv.Atoi(text)
	return number
}
