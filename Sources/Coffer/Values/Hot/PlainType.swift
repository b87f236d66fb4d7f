/// The types whose values need no encoding, and which are used most: `Int`, `Bool`, `Double` and `String`.
///
/// Where a program reads or sets a setting, the compiler knows the type. Inlined there, only one of the branches below
/// remains, and nothing generic.
@usableFromInline
enum PlainType {
  /// Takes the branch for `Object`.
  @inlinable
  @inline(__always)
  static func match<Object, Result>(
    _ type: Object.Type, int: @autoclosure () throws -> Result, bool: @autoclosure () throws -> Result,
    double: @autoclosure () throws -> Result, string: @autoclosure () throws -> Result,
    otherwise: @autoclosure () throws -> Result
  ) rethrows -> Result {
    if Object.self == Int.self { return try int() }
    if Object.self == Bool.self { return try bool() }
    if Object.self == Double.self { return try double() }
    if Object.self == String.self { return try string() }
    return try otherwise()
  }

  /// Takes the branch for `Object`; each returns a `Result` if `Object` is its type.
  @inlinable
  @inline(__always)
  static func value<Object, Result, ForInt, ForBool, ForDouble, ForString>(
    of type: Object.Type, int: @autoclosure () throws -> ForInt, bool: @autoclosure () throws -> ForBool,
    double: @autoclosure () throws -> ForDouble, string: @autoclosure () throws -> ForString,
    otherwise: @autoclosure () throws -> Result
  ) rethrows -> Result {
    try match(
      type, int: same(try int()), bool: same(try bool()), double: same(try double()), string: same(try string()),
      otherwise: try otherwise())
  }

  /// A value as `Target`, which is its actual type, although generic code does not know that.
  @inlinable
  @inline(__always)
  static func same<Source, Target>(_ value: Source, as type: Target.Type = Target.self) -> Target {
    assert(Source.self == Target.self)
    return unsafeBitCast(value, to: type)
  }
}
