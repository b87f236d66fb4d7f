#if canImport(SwiftUI)
  import Observation
  import SwiftUI
  import Synchronization

  extension Preference: DynamicProperty {
    /// Called by SwiftUI before it draws the view; from the first call on, changes redraw the view.
    public nonisolated func update() {
      redraws.follow { values }
    }

    /// A binding to the setting, for controls.
    ///
    /// ```swift
    /// Picker("Theme", selection: $theme.binding) { … }
    /// ```
    public var binding: Binding<Object> {
      Binding {
        wrappedValue
      } set: {
        wrappedValue = $0
      }
    }
  }

  /// Redraws a view when a setting that it has read changes.
  final class Redraws: Observable, Sendable {
    private let registrar = ObservationRegistrar()
    private let following = Mutex<Task<Void, Never>?>(nil)

    deinit {
      following.withLock { $0?.cancel() }
    }

    /// Stands for the value in SwiftUI's tracking, which records only reads and changes.
    private var value: Void { () }

    func recordAccess() {
      registrar.access(self, keyPath: \.value)
    }

    private func recordChange() {
      registrar.withMutation(of: self, keyPath: \.value) {}
    }

    func follow<Object>(_ values: () -> Preferences.Values<Object>) {
      following.withLock { task in
        guard task == nil else { return }
        let values = values()
        task = Task { [weak self] in
          var isFirst = true
          for await _ in values {
            // The current value is being drawn already.
            if !isFirst { await MainActor.run { [weak self] in self?.recordChange() } }
            isFirst = false
          }
        }
      }
    }
  }
#endif
