import PrefsFleet

await FleetTool.main()
