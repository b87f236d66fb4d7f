import CSQLite
import CofferCrypto
import CofferStorage
import Foundation
import Synchronization

/// A VFS beneath ours that passes everything on to the system's and records each byte that goes to any file, the shared
/// memory included.
package final class RecordingVFS: Sendable {
  package enum Event: Sendable {
    case open(path: String)
    case write(path: String, offset: Int64, bytes: Data)
    case truncate(path: String, size: Int64)
    case sync(path: String)
    case delete(path: String)
    /// What the first region of the wal-index held when a lock was let go of.
    case sharedMemory(path: String, bytes: Data)
  }

  package let name: String
  fileprivate let below: VFSPointer
  private let recorded = Lock<[Event]>([])
  /// What a write gives back instead of being done, by path and offset; nil lets it through.
  private let fault = Lock<@Sendable (String, Int64) -> Int32?>({ _, _ in nil })
  private static let count = Atomic<Int>(0)

  /// Registered for the life of the process, like every VFS.
  package init() {
    let number = Self.count.wrappingAdd(1, ordering: .relaxed).newValue
    name = "recording-\(number)"
    let below = sqlite3_vfs_find(nil)!
    self.below = VFSPointer(pointer: below)
    let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    vfs.initialize(to: below.pointee)
    vfs.pointee.iVersion = 2
    vfs.pointee.szOsFile = Int32(OpenFile.byteCount)
    vfs.pointee.pNext = nil
    vfs.pointee.zName = UnsafePointer(strdup(name))
    vfs.pointee.pAppData = Unmanaged.passRetained(self).toOpaque()
    vfs.pointee.xOpen = { vfs, name, file, flags, outFlags in
      let recorder = RecordingVFS.of(vfs!)
      file!.pointee.pMethods = nil
      let path = name.map { String(cString: $0) } ?? "(temporary)"
      recorder.record(.open(path: path))
      return RealFile.open(name!, recorder.below, flags, outFlags) { real in
        OpenFile.install(
          RecordedFile(real: real, path: path, recorder: recorder), in: file!, methods: RecordedFile.methods)
      }
    }
    vfs.pointee.xDelete = { vfs, name, sync in
      let recorder = RecordingVFS.of(vfs!)
      recorder.record(.delete(path: String(cString: name!)))
      return recorder.below.pointer.pointee.xDelete(recorder.below.pointer, name, sync)
    }
    vfs.pointee.xAccess = { vfs, name, flags, result in
      let below = RecordingVFS.of(vfs!).below.pointer
      return below.pointee.xAccess(below, name, flags, result)
    }
    vfs.pointee.xFullPathname = { vfs, name, count, output in
      let below = RecordingVFS.of(vfs!).below.pointer
      return below.pointee.xFullPathname(below, name, count, output)
    }
    sqlite3_vfs_register(vfs, 0)
  }

  private static func of(_ vfs: UnsafeMutablePointer<sqlite3_vfs>) -> RecordingVFS {
    Unmanaged<RecordingVFS>.fromOpaque(vfs.pointee.pAppData).takeUnretainedValue()
  }

  /// Lets writes fail from here on.
  package func failWrites(_ fault: @escaping @Sendable (_ path: String, _ offset: Int64) -> Int32?) {
    self.fault.withLock { $0 = fault }
  }

  fileprivate func faultOfWrite(to path: String, at offset: Int64) -> Int32? {
    fault.withLock { $0 }(path, offset)
  }

  fileprivate func record(_ event: Event) {
    recorded.withLock { $0.append(event) }
  }

  package var events: [Event] { recorded.withLock { $0 } }

  /// Everything that was ever written, file by file, in the order of the writes.
  package var writtenBytes: Data {
    events.reduce(into: Data()) { bytes, event in
      switch event {
      case .write(_, _, let written), .sharedMemory(_, let written): bytes.append(written)
      default: break
      }
    }
  }
}

/// A file that is written to through the recorder.
private final class RecordedFile {
  let real: RealFile
  let path: String
  let recorder: RecordingVFS
  var index: UnsafeMutableRawPointer?
  var indexByteCount = 0

  init(real: RealFile, path: String, recorder: RecordingVFS) {
    self.real = real
    self.path = path
    self.recorder = recorder
  }

  func recordIndex() {
    guard let index else { return }
    recorder.record(.sharedMemory(path: path + "-shm", bytes: Data(bytes: index, count: indexByteCount)))
  }

  private static func of(_ file: UnsafeMutablePointer<sqlite3_file>?) -> RecordedFile {
    OpenFile.state(file!).takeUnretainedValue()
  }

  nonisolated(unsafe) static let methods: UnsafePointer<sqlite3_io_methods> = {
    let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    methods.initialize(to: sqlite3_io_methods())
    methods.pointee.iVersion = 2
    methods.pointee.xClose = { file in
      let state: Unmanaged<RecordedFile> = OpenFile.state(file!)
      let code = state.takeUnretainedValue().real.close()
      state.release()
      return code
    }
    methods.pointee.xRead = { file, buffer, count, offset in of(file).real.read(buffer!, Int(count), at: offset) }
    methods.pointee.xWrite = { file, buffer, count, offset in
      let recorded = of(file)
      if let code = recorded.recorder.faultOfWrite(to: recorded.path, at: offset) { return code }
      recorded.recorder.record(
        .write(path: recorded.path, offset: offset, bytes: Data(bytes: buffer!, count: Int(count))))
      return recorded.real.write(buffer!, Int(count), at: offset)
    }
    methods.pointee.xTruncate = { file, size in
      let recorded = of(file)
      recorded.recorder.record(.truncate(path: recorded.path, size: size))
      return recorded.real.file.pointee.pMethods.pointee.xTruncate(recorded.real.file, size)
    }
    methods.pointee.xSync = { file, flags in
      let recorded = of(file)
      recorded.recorder.record(.sync(path: recorded.path))
      return recorded.real.file.pointee.pMethods.pointee.xSync(recorded.real.file, flags)
    }
    methods.pointee.xFileSize = { file, result in
      let real = of(file).real.file
      return real.pointee.pMethods.pointee.xFileSize(real, result)
    }
    methods.pointee.xLock = { file, level in
      let real = of(file).real.file
      return real.pointee.pMethods.pointee.xLock(real, level)
    }
    methods.pointee.xUnlock = { file, level in
      let real = of(file).real.file
      return real.pointee.pMethods.pointee.xUnlock(real, level)
    }
    methods.pointee.xCheckReservedLock = { file, result in
      let real = of(file).real.file
      return real.pointee.pMethods.pointee.xCheckReservedLock(real, result)
    }
    methods.pointee.xFileControl = { file, operation, argument in
      let real = of(file).real.file
      return real.pointee.pMethods.pointee.xFileControl(real, operation, argument)
    }
    methods.pointee.xSectorSize = { file in
      let real = of(file).real.file
      return real.pointee.pMethods.pointee.xSectorSize(real)
    }
    methods.pointee.xDeviceCharacteristics = { file in
      let real = of(file).real.file
      return real.pointee.pMethods.pointee.xDeviceCharacteristics(real)
    }
    methods.pointee.xShmMap = { file, region, count, extend, result in
      let recorded = of(file)
      let real = recorded.real.file
      let code = real.pointee.pMethods.pointee.xShmMap(real, region, count, extend, result)
      if region == 0, code == SQLITE_OK {
        recorded.index = UnsafeMutableRawPointer(result!).load(as: UnsafeMutableRawPointer?.self)
        recorded.indexByteCount = Int(count)
      }
      return code
    }
    methods.pointee.xShmLock = { file, first, count, flags in
      let recorded = of(file)
      if flags & (SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE) == SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE {
        recorded.recordIndex()
      }
      let real = recorded.real.file
      return real.pointee.pMethods.pointee.xShmLock(real, first, count, flags)
    }
    methods.pointee.xShmBarrier = { file in
      let real = of(file).real.file
      real.pointee.pMethods.pointee.xShmBarrier(real)
    }
    methods.pointee.xShmUnmap = { file, delete in
      let recorded = of(file)
      recorded.recordIndex()
      recorded.index = nil
      return recorded.real.file.pointee.pMethods.pointee.xShmUnmap(recorded.real.file, delete)
    }
    return UnsafePointer(methods)
  }()
}
