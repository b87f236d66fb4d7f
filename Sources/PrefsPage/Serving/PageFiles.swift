/// The files of the page, embedded in the program.
enum PageFiles {
  struct File {
    let type: String
    let bytes: [UInt8]
  }

  private static let script = "text/javascript; charset=utf-8"

  /// The file at a path within the page; nil if there is none.
  static func file(_ path: String) -> File? {
    switch path {
    case "": File(type: "text/html; charset=utf-8", bytes: PackageResources.index_html)
    case "page.css": File(type: "text/css; charset=utf-8", bytes: PackageResources.page_css)
    case "icon.svg": File(type: "image/svg+xml", bytes: PackageResources.icon_svg)
    case "page.js": File(type: script, bytes: PackageResources.page_js)
    case "server.js": File(type: script, bytes: PackageResources.server_js)
    case "channel.js": File(type: script, bytes: PackageResources.channel_js)
    case "list.js": File(type: script, bytes: PackageResources.list_js)
    case "details.js": File(type: script, bytes: PackageResources.details_js)
    case "editors.js": File(type: script, bytes: PackageResources.editors_js)
    case "limits.js": File(type: script, bytes: PackageResources.limits_js)
    case "json.js": File(type: script, bytes: PackageResources.json_js)
    case "changes.js": File(type: script, bytes: PackageResources.changes_js)
    case "dialogs.js": File(type: script, bytes: PackageResources.dialogs_js)
    case "plans.js": File(type: script, bytes: PackageResources.plans_js)
    case "timeline.js": File(type: script, bytes: PackageResources.timeline_js)
    case "columns.js": File(type: script, bytes: PackageResources.columns_js)
    case "fleets.js": File(type: script, bytes: PackageResources.fleets_js)
    case "chart.js": File(type: script, bytes: PackageResources.chart_js)
    case "rows.js": File(type: script, bytes: PackageResources.rows_js)
    case "elements.js": File(type: script, bytes: PackageResources.elements_js)
    default: nil
    }
  }
}
