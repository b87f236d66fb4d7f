// Modules whose traits the program has not enabled.

import Coffer
import CofferConfiguration
import CofferMetrics
import CofferService

func use(_ settings: ConnectionProxy) throws {
  _ = try CofferProvider(settings, collections: ["web"])  // error: enable the trait "Configuration"
  _ = CofferService(settings.database)  // error: enable the trait "ServiceLifecycle"
  _ = Database.Options(meter: StoreMetrics(store: "settings"))  // error: enable the trait "Metrics"
}
