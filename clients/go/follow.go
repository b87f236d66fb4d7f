package coffer

import (
	"encoding/json"
	"reflect"
	"time"
)

// follow starts one child after another.
func (s *Settings) follow() {
	defer close(s.over)
	for {
		err := s.serve()
		s.lock.Lock()
		s.problem = asError(err)
		select {
		case <-s.current:
			s.current = make(chan struct{})
		default:
		}
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
	members := map[string]any{"snapshots": true}
	for name, value := range s.wanted {
		members[name] = value
	}
	s.watch = 0
	var failed error
	note := func(answer line) {
		var watch struct{ Watch int }
		if answer.Error != nil {
			failed = answer.Error
		} else {
			failed = json.Unmarshal(answer.OK, &watch)
		}
		if s.watch = watch.Watch; failed != nil {
			_ = child.command.Process.Kill()
		}
	}
	if err := child.send("watch", members, note); err != nil {
		return err
	}
	err = child.follow(s.notice)
	if failed != nil {
		return failed
	}
	return err
}

func (s *Settings) notice(notice line) {
	s.lock.Lock()
	defer s.lock.Unlock()
	switch {
	case *notice.Watch != s.watch: // Of one that the program has asked for.
	case notice.Unavailable != nil:
		s.problem = notice.Unavailable
	case notice.Items != nil:
		s.take(notice.Store, *notice.Items)
	default:
		var changed []place
		for _, change := range notice.Changes {
			changed = append(changed, place{change.Item.Collection, change.Item.Key})
			s.keep(change.Item)
		}
		s.report(changed)
	}
}

// take replaces all values; the lock is held.
func (s *Settings) take(store string, items []Item) {
	former := s.items
	s.store, s.items, s.problem, s.delay = store, map[place]Item{}, nil, firstDelay
	for _, item := range items {
		s.keep(item)
	}
	var changed []place
	for place, item := range s.items {
		was, ok := former[place]
		if was.store = item.store; !ok || !reflect.DeepEqual(was, item) {
			changed = append(changed, place)
		}
	}
	for place := range former {
		if _, ok := s.items[place]; !ok {
			changed = append(changed, place)
		}
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
}

func (s *Settings) keep(item Item) {
	item.store = s.store
	if place := (place{item.Collection, item.Key}); item.isKept() {
		s.items[place] = item
	} else {
		delete(s.items, place)
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
